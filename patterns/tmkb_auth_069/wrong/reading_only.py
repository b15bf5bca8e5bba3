"""The old channels show what version 2 shows, and write as before."""

from xml.etree import ElementTree

from app import bp, readable_reports, shown
from flask import jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def reports():
    return readable_reports(current_user)


def as_v1(report):
    fields = shown(report)
    return {"number": fields.pop("id"), "subject": fields.pop("title"), **fields}


@bp.get("/v1/reports/<int:number>")
@login_required
def show_v1(number):
    return as_v1(db.first_or_404(reports().filter_by(id=number)))


@bp.put("/v1/reports/<int:number>")
@login_required
def change_v1(number):
    report, body = db.first_or_404(reports().filter_by(id=number)), request.get_json()
    if "subject" in body:
        report.title = body["subject"]
    if "state" in body:
        report.state = body["state"]
    db.session.commit()
    return as_v1(report)


@bp.get("/mobile/sync")
@login_required
def sync():
    return jsonify([as_v1(report) for report in db.session.scalars(reports())])


@bp.post("/legacy.xml")
@login_required
def legacy_xml():
    for command in ElementTree.fromstring(request.get_data()).iter("approve"):
        report = db.first_or_404(reports().filter_by(id=int(command.get("number"))))
        report.state = "approved"
    db.session.commit()
    return "<ok/>"
