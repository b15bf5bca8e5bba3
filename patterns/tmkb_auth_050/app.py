"""Attachments of projects, whose new columns are empty. A version of the code migrates them and lists attachments."""

from flask import Blueprint
from flask_login import current_user
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db


class Project(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer, nullable=False)


class Attachment(db.Model):
    name = mapped_column(db.String, primary_key=True)
    uploader_id = mapped_column(db.ForeignKey(User.id), nullable=False)
    project_id = mapped_column(db.Integer)
    organization_id = mapped_column(db.Integer)  # new


class Member(db.Model):
    user_id = mapped_column(db.Integer, primary_key=True)
    role = mapped_column(db.String, nullable=False)
    may_export = mapped_column(db.Boolean)  # new


bp = Blueprint("attachments", __name__)
revisions = []


def revision(upgrade):
    """Register the decorated function, as a revision of Alembic has a function `upgrade`."""
    revisions.append(upgrade)
    return upgrade


def may_export():
    member = db.session.get(Member, current_user.id)
    return member is not None and member.may_export


def event_upgrade():
    """Run the migration. Return the exception that stops it."""
    try:
        revisions[0]()
    except ValueError as error:
        db.session.rollback()
        return {"stopped": type(error).__name__}
    return {"stopped": None}


def event_project(id, organization):
    db.session.add(Project(id=id, organization_id=organization))


def event_attachment(name, uploader, project, organization=None):
    db.session.add(Attachment(name=name, uploader_id=uploader, project_id=project, organization_id=organization))


def event_transferred(name, organization):
    db.session.get_one(Attachment, name).organization_id = organization


def event_member(user, role):
    db.session.add(Member(user_id=user, role=role))


def event_export_withdrawn(user):
    db.session.get_one(Member, user).may_export = False


def state_attachments():
    attachments = db.session.scalars(db.select(Attachment).order_by(Attachment.name))
    return [[attachment.name, attachment.organization_id] for attachment in attachments]


def state_members():
    members = db.session.scalars(db.select(Member).order_by(Member.user_id))
    return [[member.user_id, member.may_export] for member in members]
