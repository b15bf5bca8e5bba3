"""The DELETE carries the rule and returns the ids that it deleted; unless these are all, it is rolled back."""

from app import Ticket, bp
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def delete_or_404(ids):
    mine = db.delete(Ticket).filter_by(organization_id=current_user.organization_id, author_id=current_user.id)
    deleted = db.session.scalars(mine.where(Ticket.id.in_(ids)).returning(Ticket.id))
    if set(deleted) != set(ids):
        abort(404)
    db.session.commit()


@bp.delete("/tickets/<int:ticket_id>")
@login_required
def delete_ticket(ticket_id):
    delete_or_404([ticket_id])
    return "", 204


@bp.post("/tickets/delete")
@login_required
def delete_tickets():
    delete_or_404(request.get_json()["ids"])
    return "", 204


# endregion
