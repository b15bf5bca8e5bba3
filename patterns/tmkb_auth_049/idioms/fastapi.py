"""Customers of organizations, with filters and sorting limited to the columns that the user's role may read."""

import base64
import json

from fastapi import APIRouter, HTTPException, Request
from sqlalchemy import select
from sqlalchemy.orm import Mapped, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db, User


class Customer(Base):
    __tablename__ = "customers"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    city: Mapped[str]
    discount: Mapped[str]
    reset_token: Mapped[str]
    organization_id: Mapped[int]


router = APIRouter()

# region idiom
READABLE = {"member": {"name", "city"}, "admin": {"name", "city", "discount"}}


def column_of(field: str, user: User):
    if field not in READABLE.get(user.role, ()):
        raise HTTPException(400)
    return getattr(Customer, field)


def own_customers(user: User):
    return select(Customer).where(Customer.organization_id == user.organization_id)


# endregion


def condition(column, operator: str, value: str):
    return column.startswith(value, autoescape=True) if operator == "startswith" else column == value


def write_cursor(offset: int) -> str:
    return base64.urlsafe_b64encode(json.dumps({"offset": offset}).encode()).decode()


def read_cursor(cursor: str) -> int:
    try:
        return min(abs(int(json.loads(base64.urlsafe_b64decode(cursor))["offset"])), 10_000)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise HTTPException(400) from None


@router.get("/customers")
def list_customers(request: Request, user: CurrentUser, db: Db):
    params = {name: request.query_params.getlist(name)[0] for name in request.query_params}
    offset = read_cursor(params.pop("cursor")) if "cursor" in params else 0
    query = own_customers(user)
    if sort := params.pop("sort", None):
        column = column_of(sort.removeprefix("-"), user)
        query = query.order_by(column.desc() if sort.startswith("-") else column)
    for name, value in params.items():
        field, _, operator = name.partition("__")
        query = query.where(condition(column_of(field, user), operator, value))
    page = db.scalars(query.order_by(Customer.id).offset(offset).limit(2))
    return {"names": [customer.name for customer in page], "next": write_cursor(offset + 2)}


def event_customer(db, **values):
    db.add(Customer(**values))


def event_nested_cursor(db):
    return base64.urlsafe_b64encode(b"[" * 5000).decode()
