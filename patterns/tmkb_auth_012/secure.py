"""One ticket or many: all are looked up in the set its caller may delete, and one miss refuses the batch."""

from flask import Blueprint, abort, request
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
    # region template
    ids = set(request.json["ids"])
    tickets = db.session.scalars(deletable(current_user).where(Ticket.id.in_(ids))).all()
    if {ticket.id for ticket in tickets} != ids:
        abort(404)
    for ticket in tickets:
        db.session.delete(ticket)
    db.session.commit()
    # endregion
    return "", 204


# endregion
