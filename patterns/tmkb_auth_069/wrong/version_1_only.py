"""Version 1 has the rules of version 2; the mobile and XML channels were not looked at."""

from xml.etree import ElementTree

from app import Report, approve, bp, rename, report_or_404, shown
from flask import abort, jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def reports():
    return db.select(Report).filter_by(organization_id=current_user.organization_id)


def as_v1(report):
    fields = shown(report)
    return {"number": fields.pop("id"), "subject": fields.pop("title"), **fields}


@bp.put("/v1/reports/<int:number>")
@login_required
def change_v1(number):
    report, body = report_or_404(number), request.get_json()
    if body.get("subject", report.title) != report.title:
        rename(report, body["subject"])
    if body.get("state", report.state) != report.state:
        approve(report) if body["state"] == "approved" else abort(400)
    db.session.commit()
    return as_v1(report)


@bp.get("/v1/reports/<int:number>")
@login_required
def show_v1(number):
    return as_v1(report_or_404(number))


@bp.get("/mobile/sync")
@login_required
def sync():
    return jsonify([{"subject": report.title, "amount": report.amount} for report in db.session.scalars(reports())])


@bp.post("/legacy.xml")
@login_required
def legacy_xml():
    for command in ElementTree.fromstring(request.get_data()).iter("approve"):
        report = db.first_or_404(reports().filter_by(id=int(command.get("number"))))
        report.state = "approved"
    db.session.commit()
    return "<ok/>"
