from flask import Blueprint, abort, g, jsonify
from flask_login import login_required

from worklane.services import reports

blueprint = Blueprint("reports", __name__, url_prefix="/reports")


@blueprint.get("")
@login_required
def index():
    return jsonify(reports.totals(g.organization.id))


@blueprint.get("/workload")
@login_required
def workload():
    if g.membership.role == "guest":
        abort(403)
    return jsonify(reports.workload(g.organization.id))


@blueprint.get("/progress")
@login_required
def progress():
    return jsonify(reports.progress(g.membership))


@blueprint.get("/revenue")
@login_required
def revenue():
    if g.membership.role not in ("admin", "owner"):
        abort(403)
    return jsonify(reports.revenue(g.organization.id))
