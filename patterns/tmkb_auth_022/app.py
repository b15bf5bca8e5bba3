"""Tickets of organizations in PostgreSQL. Only row-level security separates the organizations."""

from celery import current_app as celery_app
from flask import Blueprint, current_app, request
from flask_login import current_user, login_required
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.orm import mapped_column
from sqlalchemy.orm.exc import StaleDataError

from tmkb.authoring.proofs.stage import db


class Ticket(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    subject = mapped_column(db.String)
    organization_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("tickets", __name__)


@bp.errorhandler(ProgrammingError)
def violates_policy(error):
    if error.orig.sqlstate != "42501":  # insufficient_privilege
        raise error
    return "", 403


@bp.errorhandler(StaleDataError)
def row_is_gone(_error):
    return "", 404


@bp.get("/tickets")
@login_required
def list_tickets():
    return [ticket.subject for ticket in db.session.scalars(db.select(Ticket).order_by(Ticket.id))]


@bp.post("/tickets")
@login_required
def create_ticket():
    ticket = Ticket(**{"organization_id": current_user.organization_id, **request.get_json()})
    db.session.add(ticket)
    db.session.commit()
    return {"id": ticket.id}, 201


@bp.post("/tickets/import")
@login_required
def import_tickets():
    rows = [{"organization_id": current_user.organization_id, **row} for row in request.get_json()]
    db.session.execute(db.insert(Ticket), rows)
    db.session.commit()
    return "", 204


@bp.get("/tickets/<int:ticket_id>")
@login_required
def show_ticket(ticket_id):
    return {"subject": db.get_or_404(Ticket, ticket_id).subject}


@bp.patch("/tickets/<int:ticket_id>")
@login_required
def edit_ticket(ticket_id):
    ticket = db.get_or_404(Ticket, ticket_id)
    for name, value in request.get_json().items():
        setattr(ticket, name, value)
    db.session.commit()
    return "", 204


@bp.delete("/tickets")
@login_required
def delete_tickets():
    db.session.execute(db.delete(Ticket))
    db.session.commit()
    return "", 204


@bp.patch("/tickets")
@login_required
def edit_tickets():
    db.session.execute(db.update(Ticket).values(request.get_json()))
    db.session.commit()
    return "", 204


@bp.get("/tickets/search")
@login_required
def search_tickets():
    statement = db.text("SELECT subject FROM ticket WHERE subject LIKE :text")
    return list(db.session.scalars(statement, {"text": f"%{request.args['text']}%"}))


def event_enqueue_digest(organization_id):
    celery_app.send_task("nightly_digest", [organization_id])


def event_work_and_list(tenant_id, user):
    """Work for a tenant, request the list as ``user`` in the same application context, and return the response."""
    db.session.info["tenant_id"] = tenant_id
    return current_app.test_client().get("/tickets", headers={"X-User": user}).json


def event_report():
    """Return all tickets that a script without a tenant reads on a pooled connection."""
    with db.engine.connect() as connection:
        return list(connection.scalars(db.select(Ticket.subject)))


def event_move(ticket, organization_id):
    with db.engines["superuser"].begin() as connection:
        connection.execute(db.update(Ticket).filter_by(id=ticket).values(organization_id=organization_id))


def state_tickets():
    with db.engines["superuser"].connect() as connection:
        rows = connection.execute(db.select(Ticket.id, Ticket.subject, Ticket.organization_id).order_by(Ticket.id))
        return [list(row) for row in rows]
