"""Only deleting checks both relations."""

from app import Timesheet, bp
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def load_timesheet(user, action, sheet_id):
    sheet = db.get_or_404(Timesheet, sheet_id)
    if sheet.organization_id != user.organization_id:
        abort(404)
    creator = sheet.created_by == user.id
    rules = {"edit": creator, "delete": creator or user.role == "admin"}
    if not rules[action]:
        abort(403)
    return sheet


@bp.patch("/timesheets/<int:timesheet_id>")
@login_required
def edit_timesheet(timesheet_id):
    sheet = db.first_or_404(db.select(Timesheet).filter_by(id=timesheet_id, created_by=current_user.id))
    sheet.hours = request.get_json()["hours"]
    db.session.commit()
    return "", 204


@bp.delete("/timesheets/<int:timesheet_id>")
@login_required
def delete_timesheet(timesheet_id):
    sheet = load_timesheet(current_user, "delete", timesheet_id)
    db.session.delete(sheet)
    db.session.commit()
    return "", 204
