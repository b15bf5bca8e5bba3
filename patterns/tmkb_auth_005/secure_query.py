"""Timesheets looked up among those which the user may edit, or delete."""

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


def editable(user):
    return db.select(Timesheet).filter_by(organization_id=user.organization_id, created_by=user.id)


def deletable(user):
    if user.role == "admin":
        return db.select(Timesheet).filter_by(organization_id=user.organization_id)
    return editable(user)


@bp.patch("/timesheets/<int:timesheet_id>")
@login_required
def edit_timesheet(timesheet_id):
    sheet = db.session.scalar(editable(current_user).filter_by(id=timesheet_id))
    if sheet is None:
        abort(404)
    sheet.hours = request.get_json()["hours"]
    db.session.commit()
    return "", 204


@bp.delete("/timesheets/<int:timesheet_id>")
@login_required
def delete_timesheet(timesheet_id):
    sheet = db.session.scalar(deletable(current_user).filter_by(id=timesheet_id))
    if sheet is None:
        abort(404)
    db.session.delete(sheet)
    db.session.commit()
    return "", 204


# endregion
