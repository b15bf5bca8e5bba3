"""A message counts for five minutes, and its id is not stored."""

import time

import jwt
from app import KEYS, License, consumes

from tmkb.authoring.proofs.stage import User, db


def verified(message):
    event = jwt.decode(message, KEYS["billing"], ["HS256"], audience="seats_bought")
    own = db.select(User.organization_id).filter_by(id=event["actor"], role="admin")
    query = db.select(License).where(License.id == event["license"], License.organization_id.in_(own))
    return event, db.session.scalars(query).one()


@consumes("seats_bought")
def seats_bought(message):
    event, license = verified(message)
    if time.time() - event["iat"] > 300:
        return
    license.seats = License.seats + event["seats"]
    db.session.commit()
