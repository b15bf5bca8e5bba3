"""The cursor keeps the organization of the first page."""

from app import Customer, bp, condition, read_cursor, write_cursor
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db

READABLE = {"member": {"name", "city"}, "admin": {"name", "city", "discount"}}


def column_of(field):
    if field not in READABLE.get(current_user.role, ()):
        abort(400)
    return getattr(Customer, field)


@bp.get("/customers")
@login_required
def list_customers():
    cursor = read_cursor(request.args.get("cursor"))
    scope = cursor.get("scope", current_user.organization_id)
    query = db.select(Customer).filter_by(organization_id=scope)
    for name, value in request.args.items():
        if name == "sort":
            column = column_of(value.removeprefix("-"))
            query = query.order_by(column.desc() if value.startswith("-") else column)
        elif name != "cursor":
            field, _, operator = name.partition("__")
            query = query.where(condition(column_of(field), operator, value))
    page = db.session.scalars(query.order_by(Customer.id).offset(cursor["offset"]).limit(2))
    following = write_cursor(scope=scope, offset=cursor["offset"] + 2)
    return {"names": [customer.name for customer in page], "next": following}
