"""The old query has a copy of the rule for private reports."""

from xml.etree import ElementTree

from app import Report, bp
from flask import jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def reports():
    own = db.or_(~Report.private, Report.owner_id == current_user.id)
    return db.select(Report).filter_by(organization_id=current_user.organization_id).where(own)


def as_v1(report):
    return {"number": report.id, "subject": report.title, "state": report.state, "amount": report.amount}


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
