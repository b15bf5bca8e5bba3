from flask import Blueprint, abort, g, jsonify
from flask_login import login_required
from sqlalchemy import select

from worklane.extensions import db
from worklane.models import Setting
from worklane.policy import require
from worklane.requests import body
from worklane.services import audit

blueprint = Blueprint("settings", __name__, url_prefix="/settings")

DEFAULTS = {"week_start": "monday", "currency": "EUR", "default_visibility": "organization"}


@blueprint.get("")
@login_required
def index():
    rows = db.session.scalars(select(Setting).filter_by(organization_id=g.organization.id))
    return jsonify(DEFAULTS | {row.key: row.value for row in rows})


@blueprint.put("/<key>")
@require("organization.manage")
def change(key):
    if key not in DEFAULTS:
        abort(404)
    value = body("value")["value"]
    row = db.session.scalar(select(Setting).filter_by(organization_id=g.organization.id, key=key))
    if row is None:
        row = Setting(organization_id=g.organization.id, key=key)
        db.session.add(row)
    row.value = str(value)
    audit.record("setting.changed", key=key)
    db.session.commit()
    return jsonify({key: row.value})
