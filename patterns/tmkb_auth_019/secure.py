"""Counts use the query for visible payslips; averages are of five or more people of the organization."""

from app import Payslip, bp
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
# region template
def visible_payslips():
    slips = db.select(Payslip).filter_by(organization_id=current_user.organization_id)
    return slips if current_user.role == "admin" else slips.filter_by(user_id=current_user.id)


def count(slips):
    return db.session.scalar(db.select(db.func.count()).select_from(slips.subquery()))


# endregion


@bp.get("")
@login_required
def list_payslips():
    slips = visible_payslips().where(Payslip.amount >= request.args.get("above", 0, int))
    page = db.session.scalars(slips.order_by(Payslip.id).limit(20))
    return {"ids": [slip.id for slip in page], "total": count(slips)}


@bp.get("/departments")
@login_required
def count_by_department():
    counts = visible_payslips().with_only_columns(Payslip.department, db.func.count()).group_by(Payslip.department)
    return dict(db.session.execute(counts).tuples().all())


@bp.get("/averages")
@login_required
def average_by_department():
    people = (
        db.select(Payslip.department, db.func.avg(Payslip.amount).label("pay"))
        .where(Payslip.organization_id == current_user.organization_id)
        .group_by(Payslip.department, Payslip.user_id)
        .subquery()
    )
    averages = db.select(people.c.department, db.func.avg(people.c.pay)).group_by(people.c.department)
    return dict(db.session.execute(averages.having(db.func.count() >= 5)).tuples().all())


# endregion
