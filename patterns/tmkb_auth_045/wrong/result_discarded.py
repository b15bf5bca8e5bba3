"""The guard is called on the view, and the unguarded view is registered."""

from functools import wraps

from app import Settings, administration, bp, reports
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


class KeyView(MethodView):
    def put(self):
        db.session.get(Settings, current_user.organization_id).api_key = request.get_json()["api_key"]
        db.session.commit()
        return "", 204

    def delete(self):
        db.session.get(Settings, current_user.organization_id).api_key = None
        db.session.commit()
        return "", 204


key_view = KeyView.as_view("key")
admin_required(key_view)
bp.add_url_rule("/key", view_func=key_view)
administration.register_blueprint(reports)
