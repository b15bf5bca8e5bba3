"""A ticket view that obeys X-HTTP-Method-Override; the method that deletes asks for the role itself."""

from flask import Blueprint, abort, jsonify, request
from flask.views import MethodView
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Ticket(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.Integer, nullable=False)
    subject = db.Column(db.String, nullable=False)
    reply = db.Column(db.String, nullable=False, default="")


# region example
bp = Blueprint("tickets", __name__)


@bp.before_request
@login_required
def guard():
    if request.method == "DELETE" and current_user.role != "admin":
        abort(403)


def find_ticket(ticket_id):
    return db.first_or_404(db.select(Ticket).filter_by(id=ticket_id, organization_id=current_user.organization_id))


class TicketView(MethodView):
    def dispatch_request(self, **kwargs):
        verb = request.headers.get("X-HTTP-Method-Override", request.method).upper()
        if verb not in self.methods:
            abort(405)
        return getattr(self, verb.lower())(**kwargs)

    def get(self, ticket_id):
        ticket = find_ticket(ticket_id)
        return jsonify(subject=ticket.subject, reply=ticket.reply)

    def post(self, ticket_id):
        find_ticket(ticket_id).reply = request.get_json()["reply"]
        db.session.commit()
        return "", 204

    def delete(self, ticket_id):
        if current_user.role != "admin":
            abort(403)
        db.session.delete(find_ticket(ticket_id))
        db.session.commit()
        return "", 204


bp.add_url_rule("/tickets/<int:ticket_id>", view_func=TicketView.as_view("ticket"))


# endregion
