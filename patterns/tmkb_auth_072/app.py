"""Organizations whose identity providers provision users and groups. Groups are mapped to roles of the application."""

import secrets
from hashlib import sha256

from flask import Blueprint, abort, g, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import Organization, User, db

ACTIVE = "urn:ietf:params:scim:schemas:core:2.0:user:active"
CUSTOMER_ROLES = {"billing", "admin"}  # the role `staff` is for the operator's own organization


class Connection(db.Model):
    """The SCIM token of an organization."""

    token_hash = mapped_column(db.String, primary_key=True)
    organization_id = mapped_column(db.Integer, nullable=False)


class Membership(db.Model):
    user_id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer, primary_key=True)
    active = mapped_column(db.Boolean, nullable=False, default=True)


class Credential(db.Model):
    """A session or an API key of a user in one organization."""

    token = mapped_column(db.String, primary_key=True)
    kind = mapped_column(db.String, nullable=False)
    user_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


class Group(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    name = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


class GroupMember(db.Model):
    group_id = mapped_column(db.Integer, primary_key=True)
    user_id = mapped_column(db.Integer, primary_key=True)


class Mapping(db.Model):
    """Members of the group with this name have the role."""

    organization_id = mapped_column(db.Integer, primary_key=True)
    group_name = mapped_column(db.String, primary_key=True)
    role = mapped_column(db.String, nullable=False)


bp = Blueprint("provisioning", __name__)


@bp.before_request
def load_credential():
    g.credential = db.session.get(Credential, request.headers.get("X-Session", ""))


def scim_organization():
    """Return the id of the organization whose SCIM token the request has."""
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    connection = db.session.get(Connection, sha256(token.encode()).hexdigest())
    return connection.organization_id if connection else abort(401)


def requested_activity():
    """Return the new value of `active`. Identity providers send it as a value or in a map, as a boolean or a text.

    Attribute names have no case.
    """
    active = None
    for operation in request.get_json()["Operations"]:
        value = operation.get("value")
        changes = value if isinstance(value, dict) else {operation.get("path"): value}
        for name, change in changes.items():
            if str(name).lower() in ("active", ACTIVE):
                active = change
    return str(active).lower() == "true" if active is not None else abort(400)


def require(role=None):
    if g.credential is None:
        abort(401)
    if role and role not in g.roles:
        abort(403)


@bp.post("/credentials")
@login_required
def create_credential():
    """Sign in, or create a key. The lock lets a concurrent deactivation find the credential."""
    body = request.get_json()
    memberships = db.select(Membership).filter_by(user_id=current_user.id, active=True)
    found = db.first_or_404(memberships.filter_by(organization_id=body["organization"]).with_for_update(read=True))
    token = secrets.token_urlsafe()
    values = {"kind": body["kind"], "user_id": found.user_id, "organization_id": found.organization_id}
    db.session.add(Credential(token=token, **values))
    db.session.commit()
    return {"token": token}, 201


@bp.post("/scim/Users")
def provision():
    organization_id = scim_organization()
    user = db.first_or_404(db.select(User).filter_by(name=request.get_json()["userName"]))
    if db.session.get(Membership, (user.id, organization_id)):
        abort(409)
    db.session.add(Membership(user_id=user.id, organization_id=organization_id))
    db.session.commit()
    return {"id": user.id}, 201


@bp.get("/report")
def show_report():
    require()
    return {"report": f"strategy of {db.session.get(Organization, g.credential.organization_id).name}"}


@bp.get("/invoices")
def list_invoices():
    require("billing")
    return {"invoices": f"invoices of {db.session.get(Organization, g.credential.organization_id).name}"}


@bp.get("/staff/customers")
def list_customers():
    require("staff")
    return {"customers": "contracts of all customers"}


def event_customers():
    """Acme has Bob in its group `finance`; Carol belongs to both customers; Trent belongs to the operator."""
    db.session.add(Organization(id=3, name="Operator"))
    db.session.add_all([User(id=4, name="carol"), User(id=5, name="trent")])
    for user_id, organization_id in ((1, 1), (2, 1), (4, 1), (3, 2), (4, 2), (5, 3)):
        db.session.add(Membership(user_id=user_id, organization_id=organization_id))
    groups = ((1, "finance", 1, "billing"), (2, "it", 1, "admin"), (3, "people", 2, None), (4, "bosses", 2, "admin"))
    for group_id, name, organization_id, role in (*groups, (5, "platform", 3, "staff")):
        db.session.add(Group(id=group_id, name=name, organization_id=organization_id))
        if role:
            db.session.add(Mapping(organization_id=organization_id, group_name=name, role=role))
    for group_id, user_id in ((1, 2), (2, 1), (4, 3), (5, 5)):
        db.session.add(GroupMember(group_id=group_id, user_id=user_id))
    for organization_id, token in ((1, "scim-acme"), (2, "scim-globex"), (3, "scim-operator")):
        db.session.add(Connection(token_hash=sha256(token.encode()).hexdigest(), organization_id=organization_id))


def state_memberships():
    columns = Membership.organization_id, Membership.user_id, Membership.active
    return [list(row) for row in db.session.execute(db.select(*columns).order_by(*columns))]


def state_groups():
    groups = db.session.scalars(db.select(Group).order_by(Group.id))
    members = db.session.execute(db.select(GroupMember.group_id, GroupMember.user_id).order_by("group_id", "user_id"))
    return [[group.name for group in groups], [list(row) for row in members]]


def state_mappings():
    columns = Mapping.organization_id, Mapping.group_name, Mapping.role
    return [list(row) for row in db.session.execute(db.select(*columns).order_by(*columns))]
