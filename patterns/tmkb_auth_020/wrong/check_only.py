"""The check of a name is limited to the tenant; the unique index is not."""

from app import Project, bp, new_project
from flask import abort, request
from flask_login import current_user, login_required
from sqlalchemy.exc import IntegrityError

from tmkb.authoring.proofs.stage import db

db.Index("project_slug", Project.slug, unique=True)


def load_project(project_id):
    own = db.select(Project).filter_by(organization_id=current_user.organization_id)
    return db.first_or_404(own.where(Project.id == project_id), description="No such project.")


@bp.get("/<int:project_id>")
@login_required
def show_project(project_id):
    return {"slug": load_project(project_id).slug}


@bp.delete("/<int:project_id>")
@login_required
def delete_project(project_id):
    project = load_project(project_id)
    if current_user.role != "admin":
        abort(403, "Only administrators delete projects.")
    db.session.delete(project)
    db.session.commit()
    return "", 204


@bp.get("/free")
@login_required
def is_free():
    taken = db.select(Project).filter_by(slug=request.args["slug"], organization_id=current_user.organization_id)
    return {"free": db.session.scalar(taken) is None}


@bp.post("")
@login_required
def create_project():
    values = request.get_json()
    if "copy_of" in values:
        load_project(values["copy_of"])
    db.session.add(new_project(values["slug"]))
    try:
        db.session.commit()
    except IntegrityError:
        abort(409, "This name is taken.")
    return {"slug": values["slug"]}, 201
