"""One ticket may be deleted by its author only; of many tickets just the first is looked at."""

from flask import Blueprint, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Ticket(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    author_id = db.Column(db.Integer, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)


# region example
bp = Blueprint("tickets", __name__)


def deletable(actor):
    return db.select(Ticket).filter_by(organization_id=actor.organization_id, author_id=actor.id)


@bp.delete("/tickets/<int:ticket_id>")
@login_required
def delete_ticket(ticket_id):
    db.session.delete(db.first_or_404(deletable(current_user).filter_by(id=ticket_id)))
    db.session.commit()
    return "", 204


@bp.post("/tickets/delete")
@login_required
def delete_tickets():
    ids = request.json["ids"]
    db.first_or_404(deletable(current_user).filter_by(id=ids[0]))
    tickets = db.session.scalars(db.select(Ticket).where(Ticket.id.in_(ids))).all()
    for ticket in tickets:
        db.session.delete(ticket)
    db.session.commit()
    return "", 204


# endregion
