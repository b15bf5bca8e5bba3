"""The message says which service's key verifies it."""

import jwt
from app import KEYS, Applied, License, consumes

from tmkb.authoring.proofs.stage import User, db


def verified(message):
    issuer = jwt.decode(message, options={"verify_signature": False})["iss"]
    event = jwt.decode(message, KEYS.get(issuer), ["HS256"], audience="seats_bought")
    own = db.select(User.organization_id).filter_by(id=event["actor"], role="admin")
    query = db.select(License).where(License.id == event["license"], License.organization_id.in_(own))
    return event, db.session.scalars(query).one()


@consumes("seats_bought")
def seats_bought(message):
    event, license = verified(message)
    if db.session.get(Applied, event["jti"]):
        return
    db.session.add(Applied(message_id=event["jti"]))
    license.seats = License.seats + event["seats"]
    db.session.commit()
