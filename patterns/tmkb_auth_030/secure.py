"""An app's token: every action asks for the token's scope and for the user's role in the project."""

from flask import Blueprint, abort, request

from tmkb.authoring.proofs.stage import db


class Project(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    name = db.Column(db.String, nullable=False)


class ProjectMember(db.Model):
    project_id = db.Column(db.Integer, primary_key=True)
    user_id = db.Column(db.Integer, primary_key=True)
    role = db.Column(db.String, nullable=False)


class AccessToken(db.Model):
    token = db.Column(db.String, primary_key=True)
    user_id = db.Column(db.Integer, nullable=False)
    scope = db.Column(db.String, nullable=False)


def presented_token():
    """The token that the authorization server gave to the app for one user."""
    return db.session.get(AccessToken, request.headers.get("Authorization", "").removeprefix("Bearer ")) or abort(401)


# region example
bp = Blueprint("projects", __name__)

ROLES = {"projects:write": {"editor", "owner"}, "projects:delete": {"owner"}}


def covered(scope):
    return scope in presented_token().scope.split()


def role_in(project_id):
    member = db.session.get(ProjectMember, (project_id, presented_token().user_id))
    return member and member.role


# region template
def require(scope, project_id):
    if not covered(scope) or role_in(project_id) not in ROLES[scope]:
        abort(403)


# endregion


@bp.patch("/api/projects/<int:project_id>")
def rename_project(project_id):
    require("projects:write", project_id)
    db.get_or_404(Project, project_id).name = request.json["name"]
    db.session.commit()
    return "", 204


@bp.delete("/api/projects/<int:project_id>")
def delete_project(project_id):
    require("projects:delete", project_id)
    db.session.delete(db.get_or_404(Project, project_id))
    db.session.commit()
    return "", 204


# endregion
