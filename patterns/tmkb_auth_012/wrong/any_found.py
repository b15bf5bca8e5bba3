"""The batch is refused only if none of its tickets is the caller's."""

from app import Ticket, bp
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def own_ticket_or_404(ticket_id):
    mine = db.select(Ticket).filter_by(organization_id=current_user.organization_id, author_id=current_user.id)
    return db.first_or_404(mine.filter_by(id=ticket_id))


@bp.delete("/tickets/<int:ticket_id>")
@login_required
def delete_ticket(ticket_id):
    db.session.delete(own_ticket_or_404(ticket_id))
    db.session.commit()
    return "", 204


@bp.post("/tickets/delete")
@login_required
def delete_tickets():
    ids = request.get_json()["ids"]
    mine = db.select(Ticket).filter_by(organization_id=current_user.organization_id, author_id=current_user.id)
    if db.session.scalar(mine.where(Ticket.id.in_(ids))) is None:
        abort(404)
    tickets = db.session.scalars(db.select(Ticket).where(Ticket.id.in_(ids)))
    for ticket in tickets:
        db.session.delete(ticket)
    db.session.commit()
    return "", 204
