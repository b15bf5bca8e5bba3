"""Single sign-on with a multi-tenant identity provider. A version of the code finds the user for an ID token.

Anyone can create a tenant at the provider. The provider sets `iss` and `sub`; the administrator of a tenant sets the
e-mail addresses of its users. All tenants share the key, a stub for the keys that the provider publishes. A connection
is the tenant that an organization has registered. The response to a sign-in stands for the session: it has the plan
of the user's organization and the user's own note.
"""

import time

import jwt
from flask import Blueprint, abort, request
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db

CLIENT, KEY = "our-client-id", "the provider's key, which all of its tenants share"


class Connection(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer, nullable=False)
    issuer = mapped_column(db.String, nullable=False, unique=True)
    domain = mapped_column(db.String, nullable=False)
    plan = mapped_column(db.String, nullable=False)


class Identity(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    connection_id = mapped_column(db.Integer, nullable=False)
    subject = mapped_column(db.String, nullable=False)
    email = mapped_column(db.String, nullable=False)
    user_id = mapped_column(db.Integer, nullable=False)
    note = mapped_column(db.String, nullable=False, default="")


bp = Blueprint("sso", __name__)


def verified_claims():
    """Return the claims of the ID token in the request, whose signature, audience and expiry are valid."""
    try:
        required = {"require": ["iss", "sub", "exp"]}
        return jwt.decode(request.get_json()["id_token"], KEY, ["HS256"], required, audience=CLIENT)
    except jwt.InvalidTokenError:
        abort(401)


def enroll(connection, claims):
    """Create a member of the connection's organization, and return the identity."""
    user = User(name=f"{claims['iss']} {claims['sub']}", organization_id=connection.organization_id)
    db.session.add(user)
    db.session.flush()
    email = claims.get("email", "").lower()
    identity = Identity(connection_id=connection.id, subject=claims["sub"], email=email, user_id=user.id)
    db.session.add(identity)
    db.session.flush()
    return identity


def sign_in(user):
    db.session.commit()
    plan = db.select(Connection.plan).filter_by(organization_id=user.organization_id)
    notes = db.select(Identity.note).filter_by(user_id=user.id)
    return {"user": user.name, "plan": db.session.scalar(plan), "notes": list(db.session.scalars(notes))}


def event_connect(organization_id, tenant, domain, plan):
    issuer = f"https://login.example/{tenant}"
    db.session.add(Connection(organization_id=organization_id, issuer=issuer, domain=domain, plan=plan))


def event_link(user_id, connection_id, subject, email, note=""):
    """Store the identity of a user who has signed in before."""
    identity = Identity(user_id=user_id, connection_id=connection_id, subject=subject, email=email, note=note)
    db.session.add(identity)


def event_token(tenant, subject, audience=CLIENT, key=KEY, **claims):
    """Return an ID token of a user in a tenant of the provider."""
    claims |= {"iss": f"https://login.example/{tenant}", "sub": subject, "aud": audience, "exp": time.time() + 3600}
    return jwt.encode(claims, key, "HS256")


def state_members():
    """Return the members of Acme and their identities."""
    users = db.select(User.id, Identity.subject).outerjoin(Identity, Identity.user_id == User.id)
    rows = db.session.execute(users.where(User.organization_id == 1).order_by(User.id, Identity.id))
    return [list(row) for row in rows]
