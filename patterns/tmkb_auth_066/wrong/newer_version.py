"""A comparison checks the version that it starts from, and the other one belongs to the same case."""

from app import Case, Version, bp, can_read, case_or_404, readable_fields, record
from flask import jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def visible_versions():
    owner = Version.owner_id == current_user.id
    shared = (Version.organization_id == Case.organization_id) & (Version.audience == "team") & ~Version.hidden
    return db.select(Version).join(Case).where(can_read(current_user), owner | shared)


def values_of(version):
    return {field: getattr(version, field) for field in readable_fields(version.case, current_user)}


@bp.get("/versions/<int:version_id>")
@login_required
def show_version(version_id):
    return values_of(db.first_or_404(visible_versions().where(Version.id == version_id)))


@bp.get("/versions/<int:version_id>/compare/<int:other_id>")
@login_required
def compare_versions(version_id, other_id):
    new = values_of(db.first_or_404(visible_versions().where(Version.id == version_id)))
    old = values_of(db.get_or_404(Version, other_id))
    return {field: [old.get(field), value] for field, value in new.items() if old.get(field) != value}


@bp.post("/versions/<int:version_id>/restore")
@login_required
def restore_version(version_id):
    version = db.first_or_404(visible_versions().where(Version.id == version_id))
    case = case_or_404(version.case_id)
    for field, value in values_of(version).items():
        setattr(case, field, value)
    return record(case)


@bp.get("/activity")
@login_required
def list_activity():
    versions = db.session.scalars(visible_versions().order_by(Version.id))
    return jsonify([{"version": version.id, "title": version.title} for version in versions])
