"""Every column except the reset token can be used."""

from app import Customer, bp, condition, read_cursor, write_cursor
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db

HIDDEN = {"reset_token"}


def column_of(field):
    if field in HIDDEN or field not in Customer.__table__.columns:
        abort(400)
    return getattr(Customer, field)


def own_customers():
    return db.select(Customer).filter_by(organization_id=current_user.organization_id)


@bp.get("/customers")
@login_required
def list_customers():
    cursor = read_cursor(request.args.get("cursor"))
    query = own_customers()
    for name, value in request.args.items():
        if name == "sort":
            column = column_of(value.removeprefix("-"))
            query = query.order_by(column.desc() if value.startswith("-") else column)
        elif name != "cursor":
            field, _, operator = name.partition("__")
            query = query.where(condition(column_of(field), operator, value))
    page = db.session.scalars(query.order_by(Customer.id).offset(cursor["offset"]).limit(2))
    following = write_cursor(offset=cursor["offset"] + 2)
    return {"names": [customer.name for customer in page], "next": following}
