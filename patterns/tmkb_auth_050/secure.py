"""A migration fills two new columns from what is known, and stops if a row has no provable organization."""

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
    return db.select(Attachment).filter_by(organization_id=actor.organization_id)


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
    project = "SELECT organization_id FROM project WHERE project.id = project_id"
    db.session.execute(db.text(f"UPDATE attachment SET organization_id = ({project})"))
    # region template
    filled = "SELECT organization_id, count(*) FROM attachment GROUP BY 1"
    proved = "SELECT p.organization_id, count(*) FROM attachment JOIN project p ON p.id = project_id GROUP BY 1"
    if db.session.execute(db.text(f"{filled} EXCEPT {proved}")).first():
        raise ValueError("rows without a provable organization")
    # endregion
    db.session.execute(db.text("UPDATE member SET may_export = (role = 'admin')"))
    db.session.commit()


# endregion
