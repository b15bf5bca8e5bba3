"""A guard on the outermost blueprint runs before every view, so that no view has one of its own."""

from app import Settings, bp, reports
from flask import abort, request
from flask.views import MethodView
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.before_request
@login_required
def demand_admin():
    if request.method != "OPTIONS" and current_user.role != "admin":
        abort(403)


@bp.get("/key")
def show_key():
    return {"key": db.session.get(Settings, current_user.organization_id).api_key}


class KeyView(MethodView):
    def put(self):
        db.session.get(Settings, current_user.organization_id).api_key = request.get_json()["api_key"]
        db.session.commit()
        return "", 204

    def delete(self):
        db.session.get(Settings, current_user.organization_id).api_key = None
        db.session.commit()
        return "", 204


bp.add_url_rule("/key", view_func=KeyView.as_view("key"))
bp.register_blueprint(reports)


# endregion
