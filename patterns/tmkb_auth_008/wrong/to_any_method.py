"""Middleware applies the override of a POST before routing, whatever method it names."""

from app import bp, find_ticket
from flask import abort, request
from flask.views import MethodView
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


@bp.record_once
def apply_override(state):
    app = state.app.wsgi_app

    def overridden(environ, start_response):
        if environ["REQUEST_METHOD"] == "POST":
            environ["REQUEST_METHOD"] = environ.get("HTTP_X_HTTP_METHOD_OVERRIDE", "POST").upper()
        return app(environ, start_response)

    state.app.wsgi_app = overridden


@bp.before_request
@login_required
def guard():
    if request.method in {"PATCH", "DELETE"} and current_user.role != "admin":
        abort(403)


class TicketView(MethodView):
    def get(self, ticket_id):
        ticket = find_ticket(ticket_id)
        return {"subject": ticket.subject, "reply": ticket.reply}

    def post(self, ticket_id):
        find_ticket(ticket_id).reply = request.get_json()["reply"]
        db.session.commit()
        return "", 204

    def patch(self, ticket_id):
        find_ticket(ticket_id).subject = request.get_json()["subject"]
        db.session.commit()
        return "", 204

    def delete(self, ticket_id):
        db.session.delete(find_ticket(ticket_id))
        db.session.commit()
        return "", 204


bp.add_url_rule("/tickets/<int:ticket_id>", view_func=TicketView.as_view("ticket"))
