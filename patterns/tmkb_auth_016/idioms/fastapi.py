"""Employees, whose profiles contain the fields that are listed by name for their reader."""

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel
from sqlalchemy import Select, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db, User


class Employee(Base):
    __tablename__ = "employees"
    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int]
    organization_id: Mapped[int]
    name: Mapped[str]
    title: Mapped[str] = mapped_column(default="Engineer")
    salary: Mapped[int]
    notes: Mapped[str]
    bank_account: Mapped[str]  # for the payroll job only


class EmployeePublic(BaseModel):
    id: int
    name: str
    title: str


class EmployeeSelf(EmployeePublic):
    salary: int


class EmployeeHr(EmployeeSelf):
    notes: str


Profile = EmployeePublic | EmployeeSelf | EmployeeHr


# region idiom
def profile(user: User, employee: Employee) -> EmployeePublic | EmployeeSelf | EmployeeHr:
    kind = EmployeePublic  # id, name, title
    if user.role == "hr":
        kind = EmployeeHr
    elif employee.user_id == user.id:
        kind = EmployeeSelf
    return kind.model_validate(employee, from_attributes=True)


# endregion

router = APIRouter(prefix="/employees")


class TitleUpdate(BaseModel):
    title: str


def colleagues(user: User) -> Select:
    return select(Employee).where(Employee.organization_id == user.organization_id).order_by(Employee.id)


def one_or_404(db: Session, employees: Select) -> Employee:
    employee = db.scalar(employees)
    if employee is None:
        raise HTTPException(404)
    return employee


@router.get("")
def list_employees(user: CurrentUser, db: Db) -> list[Profile]:
    return [profile(user, employee) for employee in db.scalars(colleagues(user))]


@router.get("/{employee_id}")
def show_employee(employee_id: int, user: CurrentUser, db: Db) -> Profile:
    return profile(user, one_or_404(db, colleagues(user).where(Employee.id == employee_id)))


@router.patch("/me")
def set_own_title(change: TitleUpdate, user: CurrentUser, db: Db) -> Profile:
    employee = one_or_404(db, colleagues(user).where(Employee.user_id == user.id))
    employee.title = change.title
    db.commit()
    return profile(user, employee)


def event_hire(db, **values):
    db.add(Employee(**values))


def state_titles(db):
    return list(db.scalars(select(Employee.title).order_by(Employee.id)))
