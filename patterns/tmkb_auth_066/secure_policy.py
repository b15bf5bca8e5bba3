"""One function decides about each version by its case and its audience."""

from app import Case, Version, bp, can_read, case_or_404, readable_fields, record
from flask import abort, jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def version_or_404(version_id):
    version = db.get_or_404(Version, version_id)
    if not may_see(version):
        abort(404)
    return version


def may_see(version):
    case = db.session.scalar(db.select(Case).where(Case.id == version.case_id, can_read(current_user)))
    if case is None:
        return False
    shared = version.audience == "team" and version.organization_id == case.organization_id and not version.hidden
    return shared or version.owner_id == current_user.id


def values_of(version):
    return {field: getattr(version, field) for field in readable_fields(version.case, current_user)}


@bp.get("/versions/<int:version_id>")
@login_required
def show_version(version_id):
    return values_of(version_or_404(version_id))


@bp.get("/versions/<int:version_id>/compare/<int:other_id>")
@login_required
def compare_versions(version_id, other_id):
    new = values_of(version_or_404(version_id))
    old = values_of(version_or_404(other_id))
    return {field: [old.get(field), value] for field, value in new.items() if old.get(field) != value}


@bp.post("/versions/<int:version_id>/restore")
@login_required
def restore_version(version_id):
    version = version_or_404(version_id)
    case = case_or_404(version.case_id)
    for field, value in values_of(version).items():
        setattr(case, field, value)
    return record(case)


@bp.get("/activity")
@login_required
def list_activity():
    versions = db.session.scalars(db.select(Version).order_by(Version.id))
    return jsonify([{"version": version.id, "title": version.title} for version in versions if may_see(version)])


# endregion
