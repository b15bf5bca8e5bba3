"""A hook calls the check and ignores its result."""

from functools import wraps

from app import Settings, bp, reports
from flask import abort, request
from flask.views import MethodView
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def admin_required(view):
    @wraps(view)
    @login_required
    def guard(*args, **kwargs):
        if current_user.role != "admin":
            abort(403)
        return view(*args, **kwargs)

    return guard


@bp.get("/key")
@admin_required
def show_key():
    return {"key": db.session.get(Settings, current_user.organization_id).api_key}


def is_admin():
    return current_user.role == "admin"


class KeyView(MethodView):
    @admin_required
    def put(self):
        db.session.get(Settings, current_user.organization_id).api_key = request.get_json()["api_key"]
        db.session.commit()
        return "", 204

    @admin_required
    def delete(self):
        db.session.get(Settings, current_user.organization_id).api_key = None
        db.session.commit()
        return "", 204


bp.add_url_rule("/key", view_func=KeyView.as_view("key"))
bp.register_blueprint(reports)


@reports.before_request
def guard_export():
    is_admin()
