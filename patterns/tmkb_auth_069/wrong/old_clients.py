"""The old rules are kept for the old application, which sends a header."""

from xml.etree import ElementTree

from app import Report, approve, bp, readable_reports, rename, report_or_404, shown
from flask import abort, jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def as_v1(report):
    fields = shown(report)
    return {"number": fields.pop("id"), "subject": fields.pop("title"), **fields}


def report_of_client(number):
    if request.headers.get("X-Api-Version") == "1":
        return db.get_or_404(Report, number)
    return report_or_404(number)


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
    return as_v1(report_of_client(number))


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
