"""Projects publish events to destinations, which are e-mail addresses here. An address gets a token to confirm it."""

import secrets

from flask import Blueprint, abort, request
from flask_login import current_user
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Project(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer, nullable=False)


class Destination(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    project_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    address = mapped_column(db.String, nullable=False)
    token = mapped_column(db.String)
    confirmed = mapped_column(db.Boolean, nullable=False, default=False)


class Mail(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    address = mapped_column(db.String, nullable=False)
    text = mapped_column(db.String, nullable=False)


bp = Blueprint("destinations", __name__)


def send(address, text):
    db.session.add(Mail(address=address, text=text))


def send_challenge(address):
    """Send a new token to the address, whose owner can confirm it, and return the token."""
    token = secrets.token_urlsafe()
    send(address, token)
    return token


def require_admin():
    if current_user.role != "admin":
        abort(403)


def own_project(project_id):
    return db.first_or_404(db.select(Project).filter_by(id=project_id, organization_id=current_user.organization_id))


@bp.post("/confirmations")
def confirm():
    token = request.get_json()["token"]
    change = db.update(Destination).where(Destination.token == str(token)).values(confirmed=True)
    if not db.session.execute(change).rowcount:
        abort(404)
    db.session.commit()
    return "", 204


def event_projects():
    """Project 1 belongs to Acme and project 2 to Globex."""
    db.session.add_all([Project(id=1, organization_id=1), Project(id=2, organization_id=2)])


def event_transfer(project, organization):
    db.session.get(Project, project).organization_id = organization


def event_mailbox(address):
    """Return what the owner of the address has received."""
    return db.session.scalars(db.select(Mail.text).filter_by(address=address).order_by(Mail.id)).all()


def state_destinations():
    columns = Destination.project_id, Destination.address, Destination.confirmed
    return [list(row) for row in db.session.execute(db.select(*columns).order_by(Destination.id))]


def state_sent():
    return db.session.scalar(db.select(db.func.count(Mail.id)))
