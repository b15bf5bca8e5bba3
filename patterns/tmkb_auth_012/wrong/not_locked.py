"""All tickets are looked up among the caller's own, in the same transaction, and not locked."""

from app import Ticket, bp
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def own_tickets_or_404(ids):
    mine = db.select(Ticket).filter_by(organization_id=current_user.organization_id, author_id=current_user.id)
    tickets = db.session.scalars(mine.where(Ticket.id.in_(ids))).all()
    if {ticket.id for ticket in tickets} != set(ids):
        abort(404)
    return tickets


@bp.delete("/tickets/<int:ticket_id>")
@login_required
def delete_ticket(ticket_id):
    [ticket] = own_tickets_or_404([ticket_id])
    db.session.delete(ticket)
    db.session.commit()
    return "", 204


@bp.post("/tickets/delete")
@login_required
def delete_tickets():
    ids = request.get_json()["ids"]
    tickets = own_tickets_or_404(ids)
    for ticket in tickets:
        db.session.delete(ticket)
    db.session.commit()
    return "", 204
