"""Numbers are computed from the rows that the viewer may list; averages of few people are left out."""

from flask import Blueprint, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Payslip(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    user_id = db.Column(db.Integer, nullable=False)
    department = db.Column(db.String, nullable=False)
    amount = db.Column(db.Integer, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)


# region example
bp = Blueprint("payslips", __name__, url_prefix="/payslips")


def visible_payslips():
    slips = db.select(Payslip).filter_by(organization_id=current_user.organization_id)
    return slips if current_user.role == "admin" else slips.filter_by(user_id=current_user.id)


@bp.get("")
@login_required
def list_payslips():
    # region template
    slips = visible_payslips().where(Payslip.amount >= request.args.get("above", 0, int))
    total = db.session.scalar(db.select(db.func.count()).select_from(slips.subquery()))
    # endregion
    page = db.session.scalars(slips.order_by(Payslip.id).limit(20))
    return {"total": total, "ids": [slip.id for slip in page]}


@bp.get("/averages")
@login_required
def average_by_department():
    averages = (
        db.select(Payslip.department, db.func.avg(Payslip.amount))
        .where(Payslip.organization_id == current_user.organization_id)
        .group_by(Payslip.department)
        .having(db.func.count(Payslip.user_id.distinct()) >= 5)
    )
    return dict(db.session.execute(averages).tuples().all())


# endregion
