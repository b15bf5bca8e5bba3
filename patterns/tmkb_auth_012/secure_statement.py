"""The statement that deletes carries the rule and says what it deleted; anything less than all is rolled back."""

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
    ids = set(request.json["ids"])
    rule = deletable(current_user).whereclause
    statement = db.delete(Ticket).where(Ticket.id.in_(ids), rule).returning(Ticket.id)
    if set(db.session.scalars(statement)) != ids:
        db.session.rollback()
        abort(404)
    db.session.commit()
    return "", 204


# endregion
