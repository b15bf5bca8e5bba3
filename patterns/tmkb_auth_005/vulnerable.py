"""Editing requires the creator and deleting requires a member; neither checks both."""

from app import Timesheet, bp
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
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
    sheet = db.first_or_404(
        db.select(Timesheet).filter_by(id=timesheet_id, organization_id=current_user.organization_id)
    )
    db.session.delete(sheet)
    db.session.commit()
    return "", 204


# endregion
