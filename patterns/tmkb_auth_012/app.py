"""Tickets, which only their authors delete. A version of the code deletes one ticket, or many."""

from flask import Blueprint, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Ticket(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    subject = mapped_column(db.String, nullable=False)
    author_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("tickets", __name__)


@bp.post("/tickets")
@login_required
def create_ticket():
    ticket = Ticket(
        subject=request.get_json()["subject"],
        author_id=current_user.id,
        organization_id=current_user.organization_id,
    )
    db.session.add(ticket)
    db.session.commit()
    return {"id": ticket.id}, 201


def event_move(ticket, organization):
    """Move a ticket to another organization."""
    db.session.get(Ticket, ticket).organization_id = organization


def event_hand_over(ticket, author):
    """Make somebody else the author of a ticket."""
    db.session.get(Ticket, ticket).author_id = author


def state_tickets():
    return list(db.session.scalars(db.select(Ticket.subject).order_by(Ticket.id)))
