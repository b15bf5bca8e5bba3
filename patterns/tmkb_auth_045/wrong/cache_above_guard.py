"""The cache is between the route and the guard."""

from functools import wraps

from app import Settings, administration, bp, cache, reports
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


def cache_key():
    return f"key-{current_user.organization_id}"


@bp.get("/key")
@cache.cached(timeout=60, key_prefix=cache_key)
@admin_required
def show_key():
    return {"key": db.session.get(Settings, current_user.organization_id).api_key}


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
administration.register_blueprint(reports)
