"""Version 1 checks that the report may be changed, and then sets its fields."""

from xml.etree import ElementTree

from app import approve, bp, readable_reports, rename, report_or_404, shown
from flask import abort, jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def as_v1(report):
    fields = shown(report)
    return {"number": fields.pop("id"), "subject": fields.pop("title"), **fields}


@bp.put("/v1/reports/<int:number>")
@login_required
def change_v1(number):
    report, body = report_or_404(number), request.get_json()
    if report.owner_id != current_user.id and current_user.role != "admin":
        abort(403)
    if body.get("subject", report.title) != report.title:
        rename(report, body["subject"])
    report.state = body.get("state", report.state)
    db.session.commit()
    return as_v1(report)


@bp.get("/v1/reports/<int:number>")
@login_required
def show_v1(number):
    return as_v1(report_or_404(number))


@bp.get("/mobile/sync")
@login_required
def sync():
    return jsonify([as_v1(report) for report in db.session.scalars(readable_reports(current_user))])


@bp.post("/legacy.xml")
@login_required
def legacy_xml():
    for command in ElementTree.fromstring(request.get_data()).iter("approve"):
        approve(report_or_404(int(command.get("number"))))
    db.session.commit()
    return "<ok/>"
