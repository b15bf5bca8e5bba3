"""Timesheets of organizations. A version of the code edits and deletes them."""

from flask import Blueprint, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Timesheet(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    hours = mapped_column(db.Integer, nullable=False)
    created_by = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("timesheets", __name__)


@bp.post("/timesheets")
@login_required
def create_timesheet():
    sheet = Timesheet(
        hours=request.get_json()["hours"],
        created_by=current_user.id,
        organization_id=current_user.organization_id,
    )
    db.session.add(sheet)
    db.session.commit()
    return {"id": sheet.id}, 201


def event_move_timesheet(timesheet_id, organization_id):
    """Move a timesheet to another organization."""
    db.session.get(Timesheet, timesheet_id).organization_id = organization_id


def state_timesheets():
    return [[sheet.id, sheet.hours] for sheet in db.session.scalars(db.select(Timesheet).order_by(Timesheet.id))]
