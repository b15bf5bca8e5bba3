"""Projects of organizations. A user can belong to several, and a header names the one that a request is about."""

from flask import Blueprint, g
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db


class Membership(db.Model):
    user_id = mapped_column(db.ForeignKey("user.id"), primary_key=True)
    organization_id = mapped_column(db.ForeignKey("organization.id"), primary_key=True)
    role = mapped_column(db.String, nullable=False)


class Project(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    name = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.ForeignKey("organization.id"), nullable=False)


bp = Blueprint("projects", __name__)


@bp.get("/projects")
def list_projects():
    names = db.select(Project.name).filter_by(organization_id=g.organization_id).order_by(Project.id)
    return list(db.session.scalars(names))


def event_grant(user, organization_id, role):
    user_id = db.session.scalars(db.select(User.id).filter_by(name=user)).one()
    db.session.merge(Membership(user_id=user_id, organization_id=organization_id, role=role))


def event_revoke(user, organization_id):
    user_id = db.session.scalars(db.select(User.id).filter_by(name=user)).one()
    db.session.execute(db.delete(Membership).filter_by(user_id=user_id, organization_id=organization_id))


def event_add_project(name, organization_id):
    project = Project(name=name, organization_id=organization_id)
    db.session.add(project)
    db.session.flush()
    return project.id


def state_projects():
    return list(db.session.scalars(db.select(Project.name).order_by(Project.id)))
