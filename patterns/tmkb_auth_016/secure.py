"""Who reads decides which fields a profile has; what nobody listed is in no answer."""

from flask import Blueprint
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Employee(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    user_id = db.Column(db.Integer, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)
    name = db.Column(db.String, nullable=False)
    title = db.Column(db.String, nullable=False)
    salary = db.Column(db.Integer, nullable=False)
    notes = db.Column(db.String, nullable=False)


# region example
bp = Blueprint("employees", __name__, url_prefix="/employees")


def colleagues():
    return db.select(Employee).filter_by(organization_id=current_user.organization_id)


# region template
def fields(reader, employee):
    if reader.role == "hr":
        return ["id", "name", "title", "salary", "notes"]
    if employee.user_id == reader.id:
        return ["id", "name", "title", "salary"]
    return ["id", "name", "title"]


def profile(reader, employee):
    return {key: getattr(employee, key) for key in fields(reader, employee)}


# endregion


@bp.get("")
@login_required
def list_employees():
    return [profile(current_user, employee) for employee in db.session.scalars(colleagues())]


@bp.get("/<int:employee_id>")
@login_required
def show_employee(employee_id):
    return profile(current_user, db.first_or_404(colleagues().filter_by(id=employee_id)))


# endregion
