"""Support tickets. Members reply to them; administrators also rename and delete them. A version serves one ticket."""

from flask import Blueprint
from flask_login import current_user
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Ticket(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer, nullable=False)
    subject = mapped_column(db.String, nullable=False)
    reply = mapped_column(db.String, nullable=False, default="")


bp = Blueprint("tickets", __name__)


def find_ticket(ticket_id):
    return db.first_or_404(db.select(Ticket).filter_by(id=ticket_id, organization_id=current_user.organization_id))


def event_open(subject):
    """Open a ticket of Acme and return its id."""
    ticket = Ticket(organization_id=1, subject=subject)
    db.session.add(ticket)
    db.session.flush()
    return {"id": ticket.id}


def state_tickets():
    return [[ticket.subject, ticket.reply] for ticket in db.session.scalars(db.select(Ticket))]
