"""Who may do what.

Views of newer blueprints use `require` and `visible_projects`; others still have their conditions inline and are moved
here when they are touched.
"""

import functools

from flask import abort, g
from flask_login import current_user
from sqlalchemy import or_, select

from worklane.extensions import db
from worklane.models import Document, Project, ProjectMember

_ORGANIZATION = {
    "organization.manage": ("admin", "owner"),
    "members.manage": ("admin", "owner"),
    "billing.read": ("admin", "owner"),
    "keys.manage": ("admin", "owner"),
    "project.create": ("member", "admin", "owner"),
}
_PROJECT = {
    "project.read": ("viewer", "editor", "manager"),
    "project.edit": ("editor", "manager"),
    "project.manage": ("manager",),
}


def project_role(membership, project):
    """viewer, editor or manager; None if the project is not visible in this membership."""
    if membership is None or project.organization_id != membership.organization_id:
        return None
    if membership.is_admin or project.owner_id == membership.user_id:
        return "manager"
    row = db.session.scalar(select(ProjectMember).filter_by(project_id=project.id, user_id=membership.user_id))
    if membership.role == "guest":
        return "viewer" if row else None
    if row:
        return row.role
    return "editor" if project.visibility == "organization" else None


def can(membership, action, obj=None):
    """Whether the membership allows the action, on a project or document if the action needs one."""
    if membership is None:
        return False
    if action in _ORGANIZATION:
        return membership.role in _ORGANIZATION[action]
    if action in _PROJECT:
        return project_role(membership, obj) in _PROJECT[action]
    if action == "document.read":
        return _can_read_document(membership, obj)
    if action == "document.edit":
        return obj.deleted_at is None and project_role(membership, obj.project) in _PROJECT["project.edit"]
    raise ValueError(f"unknown action {action}")


def _can_read_document(membership, document):
    if document.deleted_at is not None or project_role(membership, document.project) is None:
        return False
    return membership.role != "guest" or document.status == "published"


def visible_projects(membership):
    """A select of the projects that the membership may read."""
    query = select(Project).where(Project.organization_id == membership.organization_id)
    if membership.is_admin:
        return query
    joined = select(ProjectMember.project_id).where(ProjectMember.user_id == membership.user_id)
    own = or_(Project.owner_id == membership.user_id, Project.id.in_(joined))
    return query.where(own if membership.role == "guest" else or_(own, Project.visibility == "organization"))


def require(action):
    """Allow a view only to memberships with the action. A view below a project gets it instead of project_id."""

    def decorate(view):
        @functools.wraps(view)
        def guarded(*args, **kwargs):
            if not current_user.is_authenticated:
                abort(401)
            if action in _PROJECT:
                project = db.session.get(Project, kwargs.pop("project_id"))
                if project is None or project_role(g.membership, project) is None:
                    abort(404)
                if not can(g.membership, action, project):
                    abort(403)
                kwargs["project"] = project
            elif not can(g.membership, action):
                abort(403)
            return view(*args, **kwargs)

        return guarded

    return decorate


def document_or_404(document_id, action="document.read"):
    """The document, if the current membership may read it and do the action."""
    document = db.session.get(Document, document_id)
    if document is None or not can(g.membership, "document.read", document):
        abort(404)
    if not can(g.membership, action, document):
        abort(403)
    return document
