"""Timesheets with one policy, which names each relation and says for each action which of them it takes."""

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


# region template
def may(user, action, sheet):
    member = sheet.organization_id == user.organization_id
    creator = sheet.created_by == user.id
    admin = user.role == "admin"
    rules = {"edit": member and creator, "delete": member and (creator or admin)}
    return rules[action]


# endregion


@bp.patch("/timesheets/<int:timesheet_id>")
@login_required
def edit_timesheet(timesheet_id):
    sheet = db.get_or_404(Timesheet, timesheet_id)
    if not may(current_user, "edit", sheet):
        abort(403)
    sheet.hours = request.get_json()["hours"]
    db.session.commit()
    return "", 204


@bp.delete("/timesheets/<int:timesheet_id>")
@login_required
def delete_timesheet(timesheet_id):
    sheet = db.get_or_404(Timesheet, timesheet_id)
    if not may(current_user, "delete", sheet):
        abort(403)
    db.session.delete(sheet)
    db.session.commit()
    return "", 204


# endregion
