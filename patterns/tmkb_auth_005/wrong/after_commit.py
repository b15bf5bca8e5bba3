"""The check runs after the change is stored."""

from app import Timesheet, bp
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def check(action, sheet):
    if sheet.organization_id != current_user.organization_id:
        abort(404)
    creator = sheet.created_by == current_user.id
    rules = {"edit": creator, "delete": creator or current_user.role == "admin"}
    if not rules[action]:
        abort(403)


@bp.patch("/timesheets/<int:timesheet_id>")
@login_required
def edit_timesheet(timesheet_id):
    sheet = db.get_or_404(Timesheet, timesheet_id)
    sheet.hours = request.get_json()["hours"]
    db.session.commit()
    check("edit", sheet)
    return "", 204


@bp.delete("/timesheets/<int:timesheet_id>")
@login_required
def delete_timesheet(timesheet_id):
    sheet = db.get_or_404(Timesheet, timesheet_id)
    db.session.delete(sheet)
    db.session.commit()
    check("delete", sheet)
    return "", 204
