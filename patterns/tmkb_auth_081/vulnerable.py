"""Events go to each destination of the project, whoever has set the address and whether or not it is confirmed."""

from app import Destination, bp, own_project, require_admin, send, send_challenge
from flask import request
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


# region example
def set_address(destination, address):
    destination.address = address
    destination.token = send_challenge(address)


@bp.post("/projects/<int:project_id>/destinations")
@login_required
def add_destination(project_id):
    project = own_project(project_id)
    require_admin()
    destination = Destination(project_id=project.id, organization_id=project.organization_id)
    set_address(destination, request.get_json()["address"])
    db.session.add(destination)
    db.session.commit()
    return {"id": destination.id}, 201


@bp.put("/destinations/<int:destination_id>")
@login_required
def change_destination(destination_id):
    destination = db.get_or_404(Destination, destination_id)
    set_address(destination, request.get_json()["address"])
    db.session.commit()
    return "", 204


@bp.post("/projects/<int:project_id>/events")
@login_required
def publish(project_id):
    project = own_project(project_id)
    for destination in db.session.scalars(db.select(Destination).filter_by(project_id=project.id)):
        send(destination.address, request.get_json()["text"])
    db.session.commit()
    return "", 204


# endregion
