"""Payslips of organizations. Counts use the query for visible payslips; averages are of five or more people."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import BeforeValidator
from sqlalchemy import func, select
from sqlalchemy.orm import Mapped, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db, User


class Payslip(Base):
    __tablename__ = "payslips"
    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int]
    department: Mapped[str]
    amount: Mapped[int]
    organization_id: Mapped[int]


router = APIRouter(prefix="/payslips")
Amount = Annotated[int, BeforeValidator(lambda text: text if str(text).isdecimal() else 0)]  # no filter for other text


def visible_payslips(user: User):
    slips = select(Payslip).where(Payslip.organization_id == user.organization_id)
    return slips if user.role == "admin" else slips.where(Payslip.user_id == user.id)


@router.get("")
def list_payslips(user: CurrentUser, db: Db, above: Amount = 0):
    slips = visible_payslips(user).where(Payslip.amount >= above)
    page = db.scalars(slips.order_by(Payslip.id).limit(20))
    total = db.scalar(select(func.count()).select_from(slips.subquery()))
    return {"ids": [slip.id for slip in page], "total": total}


@router.get("/departments")
def count_by_department(user: CurrentUser, db: Db):
    counts = visible_payslips(user).with_only_columns(Payslip.department, func.count()).group_by(Payslip.department)
    return dict(db.execute(counts).tuples().all())


# region idiom
@router.get("/averages")
def averages(user: CurrentUser, db: Db):
    people = select(Payslip.department, func.avg(Payslip.amount).label("pay"))
    people = people.where(Payslip.organization_id == user.organization_id)
    c = people.group_by(Payslip.department, Payslip.user_id).subquery().c
    groups = select(c.department, func.avg(c.pay)).group_by(c.department)
    return dict(db.execute(groups.having(func.count() >= 5)).tuples().all())


# endregion


def event_pay(db, user_id, department, amounts, organization_id):
    """Pay one person several times."""
    for amount in amounts:
        db.add(Payslip(user_id=user_id, department=department, amount=amount, organization_id=organization_id))


def event_pay_each(db, user_ids, department, amounts, organization_id):
    for user_id, amount in zip(user_ids, amounts, strict=True):
        event_pay(db, user_id, department, [amount], organization_id)
