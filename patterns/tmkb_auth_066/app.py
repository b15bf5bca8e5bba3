"""Cases with a history of versions. A version of the code lists, shows, compares and restores the old versions."""

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column, relationship

from tmkb.authoring.proofs.stage import db

FIELDS = ("title", "body", "fee")


class Case(db.Model):
    """A case that its owner or the whole team may read and edit. Only its owner and admins see the fee."""

    id = mapped_column(db.Integer, primary_key=True)
    title = mapped_column(db.String, nullable=False)
    body = mapped_column(db.String, nullable=False)
    fee = mapped_column(db.Integer, nullable=False)
    audience = mapped_column(db.String, nullable=False, default="owner")
    deleted = mapped_column(db.Boolean, nullable=False, default=False)
    owner_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


class Version(db.Model):
    """The values of a case after a change, and the audience, owner and organization that the case had then."""

    id = mapped_column(db.Integer, primary_key=True)
    case_id = mapped_column(db.ForeignKey("case.id"), nullable=False)
    title = mapped_column(db.String, nullable=False)
    body = mapped_column(db.String, nullable=False)
    fee = mapped_column(db.Integer, nullable=False)
    audience = mapped_column(db.String, nullable=False)
    owner_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    hidden = mapped_column(db.Boolean, nullable=False, default=False)
    author_id = mapped_column(db.Integer, nullable=False)
    case = relationship(Case)


bp = Blueprint("cases", __name__)


def can_read(user):
    """Return the condition for cases that ``user`` may read and edit now."""
    return db.and_(
        Case.organization_id == user.organization_id,
        ~Case.deleted,
        db.or_(Case.audience == "team", Case.owner_id == user.id),
    )


def readable_fields(case, user):
    """Return the names of the fields of ``case`` that ``user``, who may read it, sees and edits."""
    return FIELDS if user.role == "admin" or user.id == case.owner_id else ("title", "body")


def case_or_404(case_id):
    return db.first_or_404(db.select(Case).where(Case.id == case_id, can_read(current_user)))


def record(case):
    """Add the present values of ``case`` to its history, and store both."""
    db.session.add(case)
    db.session.flush()
    version = Version(case_id=case.id, author_id=current_user.id)
    for field in (*FIELDS, "audience", "owner_id", "organization_id"):
        setattr(version, field, getattr(case, field))
    db.session.add(version)
    db.session.commit()
    return {"id": case.id, "version": version.id}


@bp.post("/cases")
@login_required
def create_case():
    if current_user.organization_id is None:
        abort(403)
    values = {field: request.get_json()[field] for field in FIELDS}
    case = Case(**values, audience="owner", owner_id=current_user.id, organization_id=current_user.organization_id)
    return record(case), 201


@bp.get("/cases/<int:case_id>")
@login_required
def show_case(case_id):
    case = case_or_404(case_id)
    return {field: getattr(case, field) for field in readable_fields(case, current_user)}


@bp.put("/cases/<int:case_id>")
@login_required
def change_case(case_id):
    case = case_or_404(case_id)
    body = request.get_json()
    allowed = {*readable_fields(case, current_user), *(["audience"] if case.owner_id == current_user.id else [])}
    if not allowed >= body.keys():
        abort(403)
    for field, value in body.items():
        setattr(case, field, value)
    return record(case)


@bp.delete("/cases/<int:case_id>")
@login_required
def delete_case(case_id):
    case = case_or_404(case_id)
    if case.owner_id != current_user.id:
        abort(403)
    case.deleted = True
    db.session.commit()
    return "", 204


@bp.post("/versions/<int:version_id>/hide")
@login_required
def hide_version(version_id):
    """Hide a version with content that was published by mistake from everybody but the owner of the case."""
    version = db.get_or_404(Version, version_id)
    if case_or_404(version.case_id).owner_id != current_user.id:
        abort(403)
    version.hidden = True
    db.session.commit()
    return "", 204


def event_move(case_id, organization_id):
    db.session.get(Case, case_id).organization_id = organization_id


def event_hand_over(case_id, owner_id):
    db.session.get(Case, case_id).owner_id = owner_id


def state_cases():
    return [[case.id, case.title, case.body, case.fee] for case in db.session.scalars(db.select(Case))]
