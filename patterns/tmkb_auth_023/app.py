"""Licenses of organizations, and a consumer of billing's messages. A version of the code adds the seats."""

from datetime import UTC, datetime

import jwt
from sqlalchemy.exc import IntegrityError, NoResultFound
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db

# Each service signs its messages with a key of its own.
KEYS = {"billing": "0123456789abcdef0123456789abcdef", "search": "fedcba9876543210fedcba9876543210"}


class License(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    seats = mapped_column(db.Integer)
    organization_id = mapped_column(db.Integer)


class Applied(db.Model):
    """A message that was applied."""

    message_id = mapped_column(db.String, primary_key=True)


consumers = {}  # type of message → the function that consumes it


def consumes(type):
    """Register the decorated function as the consumer of messages of this type."""
    return lambda function: consumers.setdefault(type, function)


def event_license(id, organization):
    db.session.add(License(id=id, seats=10, organization_id=organization))


def event_license_moved(id, organization):
    db.session.get_one(License, id).organization_id = organization


def event_published(service="billing", **claims):
    """Return a message of a service as a JSON Web Token; without a service it has no signature."""
    claims = {"iss": service, "iat": datetime.now(UTC), "aud": "seats_bought", **claims}
    claims = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(claims, KEYS.get(service), algorithm="HS256" if service else "none")


def event_delivered(message):
    """Let the consumer apply a message. Return the exception that rejects it, as a dead-letter queue would store it."""
    try:
        consumers["seats_bought"](message)
    except (jwt.InvalidTokenError, KeyError, PermissionError, NoResultFound, IntegrityError) as error:
        db.session.rollback()
        return {"rejected": type(error).__name__}
    return {"rejected": None}


def event_bought(**claims):
    return event_delivered(event_published(**claims))


def state_seats():
    return [[license.id, license.seats] for license in db.session.scalars(db.select(License).order_by(License.id))]
