"""Above the route, missing on one method, outside the group: three guards that are written and never called."""

from functools import wraps

from flask import Blueprint, abort, request
from flask.views import MethodView
from flask_login import current_user

from tmkb.authoring.proofs.stage import db


class AccessKey(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    name = db.Column(db.String, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)


# region example
bp = Blueprint("organization", __name__, url_prefix="/organizations/<int:organization_id>")
administration = Blueprint("administration", __name__)
exports = Blueprint("exports", __name__)


@administration.before_request
def demand_admin():
    if not current_user.is_authenticated:
        abort(401)
    if current_user.role != "admin" or current_user.organization_id != request.view_args["organization_id"]:
        abort(403)


def admin_required(view):
    @wraps(view)
    def guarded(*args, **kwargs):
        demand_admin()
        return view(*args, **kwargs)

    return guarded


@admin_required
@bp.post("/keys")
def create_key(organization_id):
    key = AccessKey(name=request.get_json()["name"], organization_id=organization_id)
    db.session.add(key)
    db.session.commit()
    return {"id": key.id}, 201


class KeyView(MethodView):
    @admin_required
    def patch(self, organization_id, key_id):
        find_key(organization_id, key_id).name = request.get_json()["name"]
        db.session.commit()
        return "", 204

    def delete(self, organization_id, key_id):
        db.session.delete(find_key(organization_id, key_id))
        db.session.commit()
        return "", 204


def find_key(organization_id, key_id):
    return db.first_or_404(db.select(AccessKey).filter_by(id=key_id, organization_id=organization_id))


@administration.get("/usage")
def show_usage(organization_id):
    keys = db.select(db.func.count(AccessKey.id)).where(AccessKey.organization_id == organization_id)
    return {"keys": db.session.scalar(keys)}


@exports.get("/keys.csv")
def export_keys(organization_id):
    keys = db.session.scalars(db.select(AccessKey).filter_by(organization_id=organization_id))
    return "\n".join(f"{key.id},{key.name}" for key in keys), {"Content-Type": "text/csv"}


bp.add_url_rule("/keys/<int:key_id>", view_func=KeyView.as_view("key"))
bp.register_blueprint(administration)
bp.register_blueprint(exports)


# endregion
