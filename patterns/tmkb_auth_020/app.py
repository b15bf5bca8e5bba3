"""Projects of organizations. A version of the code shows, copies and deletes them, and keeps their names unique."""

from flask import Blueprint, abort
from flask_login import current_user
from sqlalchemy.orm import mapped_column
from werkzeug.exceptions import HTTPException

from tmkb.authoring.proofs.stage import db


class Project(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    slug = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("projects", __name__, url_prefix="/projects")


@bp.errorhandler(HTTPException)
def explain(error):
    return {"error": error.description}, error.code


def new_project(slug):
    """Refuse what the columns do not take, so that only a taken name fails at commit."""
    if not isinstance(slug, str) or current_user.organization_id is None:
        abort(422, "A project needs a name and an organization.")
    return Project(slug=slug, organization_id=current_user.organization_id)


def event_begin(slug, organization_id):
    db.session.add(Project(slug=slug, organization_id=organization_id))


def state_projects():
    projects = db.session.scalars(db.select(Project).order_by(Project.id))
    return [[project.slug, project.organization_id] for project in projects]
