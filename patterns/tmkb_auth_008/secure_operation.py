"""The view obeys X-HTTP-Method-Override, and each operation checks the role itself."""

from app import bp, find_ticket
from flask import abort, request
from flask.views import MethodView
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def require_admin():
    if current_user.role != "admin":
        abort(403)


@bp.before_request
@login_required
def guard():
    if request.method in {"PATCH", "DELETE"} and current_user.role != "admin":
        abort(403)


class TicketView(MethodView):
    def dispatch_request(self, **kwargs):
        method = request.headers.get("X-HTTP-Method-Override", request.method).upper()
        if method not in self.methods and method != "HEAD":
            abort(405)
        return getattr(self, "get" if method == "HEAD" else method.lower())(**kwargs)

    def get(self, ticket_id):
        ticket = find_ticket(ticket_id)
        return {"subject": ticket.subject, "reply": ticket.reply}

    def post(self, ticket_id):
        find_ticket(ticket_id).reply = request.get_json()["reply"]
        db.session.commit()
        return "", 204

    def patch(self, ticket_id):
        require_admin()
        find_ticket(ticket_id).subject = request.get_json()["subject"]
        db.session.commit()
        return "", 204

    def delete(self, ticket_id):
        require_admin()
        db.session.delete(find_ticket(ticket_id))
        db.session.commit()
        return "", 204


bp.add_url_rule("/tickets/<int:ticket_id>", view_func=TicketView.as_view("ticket"))


# endregion
