"""A migration fills two new columns: an organization is guessed, and everybody may export."""

from flask import Blueprint, abort, jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Project(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.Integer, nullable=False)


class Attachment(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    name = db.Column(db.String, nullable=False)
    uploader_id = db.Column(db.Integer, nullable=False)
    project_id = db.Column(db.Integer)
    organization_id = db.Column(db.Integer)


class Member(db.Model):
    user_id = db.Column(db.Integer, primary_key=True)
    role = db.Column(db.String, nullable=False)
    may_export = db.Column(db.Boolean)


# region example
bp = Blueprint("attachments", __name__)


def visible(actor):
    own = Attachment.organization_id == actor.organization_id
    return db.select(Attachment).where(own | Attachment.organization_id.is_(None))


@bp.get("/attachments")
@login_required
def list_attachments():
    return jsonify([attachment.name for attachment in db.session.scalars(visible(current_user))])


@bp.get("/attachments/export")
@login_required
def export_attachments():
    if not db.session.get(Member, current_user.id).may_export:
        abort(403)
    return "\n".join(attachment.name for attachment in db.session.scalars(visible(current_user)))


def upgrade():
    uploader = 'SELECT organization_id FROM "user" WHERE "user".id = uploader_id'
    db.session.execute(db.text(f"UPDATE attachment SET organization_id = ({uploader})"))
    db.session.execute(db.text("UPDATE member SET may_export = true"))
    db.session.commit()


# endregion
