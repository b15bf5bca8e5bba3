"""The migration guesses the organization and lets everybody export. An empty organization is visible to all."""

from app import Attachment, Member, User, bp, may_export, revision
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def visible_attachments():
    own = Attachment.organization_id == current_user.organization_id
    return db.session.scalars(db.select(Attachment).where(own | Attachment.organization_id.is_(None)))


@bp.get("/attachments")
@login_required
def list_attachments():
    return [attachment.name for attachment in visible_attachments()]


@bp.get("/attachments/export")
@login_required
def export_attachments():
    if not may_export():
        abort(403)
    return "\n".join(attachment.name for attachment in visible_attachments())


@revision
def upgrade():
    uploader = db.select(User.organization_id).where(User.id == Attachment.uploader_id).scalar_subquery()
    db.session.execute(db.update(Attachment).values(organization_id=uploader))
    db.session.execute(db.update(Member).values(may_export=True))
    db.session.commit()


# endregion
