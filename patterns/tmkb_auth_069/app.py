"""Expense reports and version 2 of their API. A version of the code keeps three older channels for old clients.

The rules were tightened with version 2: reports can be private, only the owner changes an open report, only another
person who is an admin approves it, and only these two see the amount.
"""

from flask import Blueprint, abort, jsonify, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Report(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    title = mapped_column(db.String, nullable=False)
    amount = mapped_column(db.Integer, nullable=False)
    private = mapped_column(db.Boolean, nullable=False)
    state = mapped_column(db.String, nullable=False, default="open")
    owner_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("reports", __name__)


def readable_reports(user):
    reports = db.select(Report).filter_by(organization_id=user.organization_id)
    return reports.where(db.or_(~Report.private, Report.owner_id == user.id)).order_by(Report.id)


def report_or_404(report_id):
    return db.first_or_404(readable_reports(current_user).where(Report.id == report_id))


def shown(report):
    """Return the fields of a readable report that the current user sees."""
    fields = {"id": report.id, "title": report.title, "state": report.state}
    if current_user.role == "admin" or report.owner_id == current_user.id:
        fields["amount"] = report.amount
    return fields


def rename(report, title):
    """Change the title of a readable report, if the current user may and nobody has approved it meanwhile."""
    if report.owner_id != current_user.id:
        abort(403)
    change = db.update(Report).filter_by(id=report.id, state="open").values(title=title)
    if not db.session.execute(change).rowcount:
        abort(409)


def approve(report):
    """Approve a readable report, if the current user may."""
    if current_user.role != "admin" or report.owner_id == current_user.id:
        abort(403)
    report.state = "approved"


@bp.post("/v2/reports")
@login_required
def create_report():
    if current_user.organization_id is None:
        abort(403)
    values = {field: request.get_json()[field] for field in ("title", "amount", "private")}
    report = Report(**values, owner_id=current_user.id, organization_id=current_user.organization_id)
    db.session.add(report)
    db.session.commit()
    return {"id": report.id}, 201


@bp.get("/v2/reports")
@login_required
def list_reports():
    return jsonify([shown(report) for report in db.session.scalars(readable_reports(current_user))])


@bp.get("/v2/reports/<int:report_id>")
@login_required
def show_report(report_id):
    return shown(report_or_404(report_id))


@bp.post("/v2/reports/<int:report_id>/approve")
@login_required
def approve_report(report_id):
    approve(report_or_404(report_id))
    db.session.commit()
    return "", 204


def state_reports():
    return [[report.title, report.state] for report in db.session.scalars(db.select(Report).order_by(Report.id))]
