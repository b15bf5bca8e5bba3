"""Each ticket is locked on its own, in the order of the request."""

from app import Ticket, bp
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def own_tickets_or_404(ids):
    mine = db.select(Ticket).filter_by(organization_id=current_user.organization_id, author_id=current_user.id)
    locked = mine.with_for_update(of=Ticket)
    return [db.first_or_404(locked.filter_by(id=ticket_id)) for ticket_id in dict.fromkeys(ids)]


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
