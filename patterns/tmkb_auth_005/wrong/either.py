"""Both actions accept either relation."""

from app import Timesheet, bp
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def load_timesheet(action, timesheet_id):
    sheet = db.get_or_404(Timesheet, timesheet_id)
    member = sheet.organization_id == current_user.organization_id
    creator = sheet.created_by == current_user.id
    rules = {"edit": member or creator, "delete": member or creator}
    if not rules[action]:
        abort(404)
    return sheet


@bp.patch("/timesheets/<int:timesheet_id>")
@login_required
def edit_timesheet(timesheet_id):
    sheet = load_timesheet("edit", timesheet_id)
    sheet.hours = request.get_json()["hours"]
    db.session.commit()
    return "", 204


@bp.delete("/timesheets/<int:timesheet_id>")
@login_required
def delete_timesheet(timesheet_id):
    sheet = load_timesheet("delete", timesheet_id)
    db.session.delete(sheet)
    db.session.commit()
    return "", 204
