"""Each ticket is checked and deleted in its own transaction, so the first ones are gone at the refusal."""

from app import Ticket, bp
from flask import request
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
    for ticket_id in dict.fromkeys(ids):
        db.session.delete(own_ticket_or_404(ticket_id))
        db.session.commit()
    return "", 204
