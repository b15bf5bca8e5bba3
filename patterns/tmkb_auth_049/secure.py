"""Each role has its list of filters, and the organization of every page comes from the session."""

import base64
import json

from flask import Blueprint, abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Customer(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    name = db.Column(db.String, nullable=False)
    city = db.Column(db.String, nullable=False)
    discount = db.Column(db.String, nullable=False)
    reset_token = db.Column(db.String, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)


# region example
bp = Blueprint("customers", __name__)
FILTERS = {"member": {"city", "name__startswith"}, "admin": {"city", "name__startswith", "discount"}}


def write_cursor(**state):
    return base64.urlsafe_b64encode(json.dumps(state).encode()).decode()


def read_cursor(text):
    return json.loads(base64.urlsafe_b64decode(text))


@bp.get("/customers")
@login_required
def customers():
    start = {"organization_id": current_user.organization_id, "after": 0}
    cursor = read_cursor(request.args["cursor"]) if "cursor" in request.args else start
    # region template
    scope = current_user.organization_id
    query = db.select(Customer).filter_by(organization_id=scope).where(Customer.id > cursor["after"])
    for name, value in request.args.items():
        if name == "cursor":
            continue
        if name not in FILTERS[current_user.role]:
            abort(400)
        # endregion
        field, _, operator = name.partition("__")
        column = getattr(Customer, field, None) or abort(400)
        query = query.where(column.startswith(value) if operator == "startswith" else column == value)
    page = db.session.scalars(query.order_by(Customer.id).limit(2)).all()
    following = write_cursor(organization_id=scope, after=page[-1].id) if page else None
    return {"names": [customer.name for customer in page], "next": following}


# endregion
