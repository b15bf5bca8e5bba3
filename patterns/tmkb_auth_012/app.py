"""Tickets, which only their authors delete. A version of the code deletes one ticket, or many."""

from flask import Blueprint, request
from flask_login import current_user, login_required
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import mapped_column, relationship

from tmkb.authoring.proofs.stage import User, db


class Ticket(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    subject = mapped_column(db.String, nullable=False)
    author_id = mapped_column(db.ForeignKey("user.id"), nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    author = relationship(User, lazy="joined")


class Incident(db.Model):
    """What went wrong, or was done in vain."""

    id = mapped_column(db.Integer, primary_key=True)
    text = mapped_column(db.String, nullable=False)


class Handover(db.Model):
    """A ticket that has got another author, who was told so."""

    id = mapped_column(db.Integer, primary_key=True)
    ticket_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("tickets", __name__)


@bp.errorhandler(OperationalError)
def ended_by_database(error):
    """Note that the database has ended a request because of a deadlock."""
    db.session.rollback()
    db.session.add(Incident(text=type(error.orig).__name__))
    db.session.commit()
    return "", 503


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
    """Make somebody else the author of a ticket, if it still exists."""
    if db.session.execute(db.update(Ticket).filter_by(id=ticket).values(author_id=author)).rowcount:
        db.session.add(Handover(ticket_id=ticket))


def state_tickets():
    return list(db.session.scalars(db.select(Ticket.subject).order_by(Ticket.id)))


def state_incidents():
    """Return the requests that a deadlock has ended, and the tickets that their former author has deleted."""
    lost = db.select(Handover.ticket_id).where(Handover.ticket_id.not_in(db.select(Ticket.id)))
    return [*db.session.scalars(db.select(Incident.text)), *(f"lost {id_}" for id_ in db.session.scalars(lost))]
