"""A profile contains the fields that are listed by name for its reader."""

from app import bp, colleagues
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
# region template
def fields(user, employee):
    """Both are of one organization: load the employee with a tenant condition."""
    if user.role == "hr":
        return ["id", "name", "title", "salary", "notes"]
    if employee.user_id == user.id:
        return ["id", "name", "title", "salary"]
    return ["id", "name", "title"]


# endregion


def profile(user, employee):
    return {field: getattr(employee, field) for field in fields(user, employee)}


@bp.get("")
@login_required
def list_employees():
    return [profile(current_user, employee) for employee in db.session.scalars(colleagues())]


@bp.get("/<int:employee_id>")
@login_required
def show_employee(employee_id):
    return profile(current_user, db.first_or_404(colleagues().filter_by(id=employee_id)))


@bp.patch("/me")
@login_required
def set_own_title():
    employee = db.first_or_404(colleagues().filter_by(user_id=current_user.id))
    employee.title = request.get_json()["title"]
    db.session.commit()
    return profile(current_user, employee)


# endregion
