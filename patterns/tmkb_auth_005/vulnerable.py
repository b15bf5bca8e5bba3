"""Timesheets: editing asks only who created one, deleting only who is a member; neither asks for both."""

from flask import Blueprint, abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Timesheet(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    hours = db.Column(db.Integer, nullable=False)
    created_by = db.Column(db.Integer, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)


# region example
bp = Blueprint("timesheets", __name__)


@bp.patch("/timesheets/<int:timesheet_id>")
@login_required
def edit_timesheet(timesheet_id):
    sheet = db.get_or_404(Timesheet, timesheet_id)
    if sheet.created_by != current_user.id:
        abort(403)
    sheet.hours = request.get_json()["hours"]
    db.session.commit()
    return "", 204


@bp.delete("/timesheets/<int:timesheet_id>")
@login_required
def delete_timesheet(timesheet_id):
    sheet = db.get_or_404(Timesheet, timesheet_id)
    if sheet.organization_id != current_user.organization_id:
        abort(403)
    db.session.delete(sheet)
    db.session.commit()
    return "", 204


# endregion
