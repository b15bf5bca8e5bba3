"""The creator has to be in some organization, but not in that of the timesheet."""

from app import Timesheet, bp
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def load_timesheet(action, timesheet_id):
    sheet = db.get_or_404(Timesheet, timesheet_id)
    member = current_user.organization_id is not None
    creator = sheet.created_by == current_user.id
    owned = sheet.organization_id == current_user.organization_id
    admin = current_user.role == "admin"
    rules = {"edit": member and creator, "delete": (member and creator) or (owned and admin)}
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
