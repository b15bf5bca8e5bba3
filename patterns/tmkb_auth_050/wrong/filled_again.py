"""Each run fills all rows again."""

from app import Attachment, Member, Project, bp, may_export, revision
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def fill():
    project = db.select(Project.organization_id).filter_by(id=Attachment.project_id)
    null = Attachment.organization_id.is_(None)
    db.session.execute(db.update(Attachment).values(organization_id=project.scalar_subquery()))
    if db.session.scalar(db.select(Attachment).where(null)):
        raise ValueError("orphans")


def visible_attachments():
    if current_user.organization_id is None:
        abort(403)
    return db.session.scalars(db.select(Attachment).filter_by(organization_id=current_user.organization_id))


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
    fill()
    db.session.execute(db.update(Member).values(may_export=Member.role == "admin"))
    db.session.commit()
