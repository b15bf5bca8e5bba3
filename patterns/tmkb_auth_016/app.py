"""Employees of organizations. A version of the code returns their profiles to colleagues and to human resources."""

from flask import Blueprint
from flask_login import current_user
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Employee(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    user_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    name = mapped_column(db.String, nullable=False)
    title = mapped_column(db.String, nullable=False, default="Engineer")
    salary = mapped_column(db.Integer, nullable=False)
    notes = mapped_column(db.String, nullable=False)
    bank_account = mapped_column(db.String, nullable=False)  # for the payroll job only


bp = Blueprint("employees", __name__, url_prefix="/employees")


def colleagues():
    return db.select(Employee).filter_by(organization_id=current_user.organization_id).order_by(Employee.id)


def event_hire(**values):
    db.session.add(Employee(**values))


def state_titles():
    return list(db.session.scalars(db.select(Employee.title).order_by(Employee.id)))
