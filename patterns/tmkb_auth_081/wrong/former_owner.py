"""Destinations stay active when the project moves."""

from app import Destination, bp, own_project, require_admin, send, send_challenge
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def set_address(destination, address):
    token = send_challenge(address)
    change = db.update(Destination).filter_by(id=destination.id)
    db.session.execute(change.values(address=address, confirmed=False, token=token))


def active_destinations(project):
    owned = db.select(Destination).filter_by(project_id=project.id)
    return db.session.scalars(owned.filter_by(confirmed=True))


@bp.post("/projects/<int:project_id>/destinations")
@login_required
def add_destination(project_id):
    project = own_project(project_id)
    require_admin()
    address = request.get_json()["address"]
    destination = Destination(project_id=project.id, organization_id=project.organization_id, address=address)
    db.session.add(destination)
    db.session.flush()
    set_address(destination, address)
    db.session.commit()
    return {"id": destination.id}, 201


@bp.put("/destinations/<int:destination_id>")
@login_required
def change_destination(destination_id):
    owned = db.select(Destination).filter_by(organization_id=current_user.organization_id)
    destination = db.first_or_404(owned.filter_by(id=destination_id))
    require_admin()
    set_address(destination, request.get_json()["address"])
    db.session.commit()
    return "", 204


@bp.post("/projects/<int:project_id>/events")
@login_required
def publish(project_id):
    project = own_project(project_id)
    for destination in active_destinations(project):
        send(destination.address, request.get_json()["text"])
    db.session.commit()
    return "", 204
