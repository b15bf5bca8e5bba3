"""The total of all payslips is shown as ten at most."""

from app import Payslip, bp
from flask import request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def visible_payslips():
    slips = db.select(Payslip).filter_by(organization_id=current_user.organization_id)
    return slips if current_user.role == "admin" else slips.filter_by(user_id=current_user.id)


def count(slips):
    return db.session.scalar(db.select(db.func.count()).select_from(slips.subquery()))


@bp.get("")
@login_required
def list_payslips():
    enough = Payslip.amount >= request.args.get("above", 0, int)
    page = db.session.scalars(visible_payslips().where(enough).order_by(Payslip.id).limit(20))
    total = db.session.scalar(db.select(db.func.count(Payslip.id)).where(enough))
    return {"ids": [slip.id for slip in page], "total": min(total, 10)}


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
