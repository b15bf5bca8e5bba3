"""Each action looks the timesheet up in a query of the timesheets on which the user may perform it."""

from app import Timesheet, bp
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def editable():
    return db.select(Timesheet).filter_by(organization_id=current_user.organization_id, created_by=current_user.id)


def deletable():
    if current_user.role == "admin":
        return db.select(Timesheet).filter_by(organization_id=current_user.organization_id)
    return editable()


@bp.patch("/timesheets/<int:timesheet_id>")
@login_required
def edit_timesheet(timesheet_id):
    sheet = db.first_or_404(editable().filter_by(id=timesheet_id))
    sheet.hours = request.get_json()["hours"]
    db.session.commit()
    return "", 204


@bp.delete("/timesheets/<int:timesheet_id>")
@login_required
def delete_timesheet(timesheet_id):
    sheet = db.first_or_404(deletable().filter_by(id=timesheet_id))
    db.session.delete(sheet)
    db.session.commit()
    return "", 204


# endregion
