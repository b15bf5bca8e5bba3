"""The organizations of actor and license are compared in Python, where None equals None."""

import jwt
from app import KEYS, Applied, License, consumes

from tmkb.authoring.proofs.stage import User, db


def verified(message):
    event = jwt.decode(message, KEYS["billing"], ["HS256"], audience="seats_bought")
    license = db.session.get_one(License, event["license"])
    actor = db.session.get_one(User, event["actor"])
    if (actor.role, actor.organization_id) != ("admin", license.organization_id):
        raise PermissionError
    return event


@consumes("seats_bought")
def seats_bought(message):
    event = verified(message)
    if db.session.get(Applied, event["jti"]):
        return
    db.session.add(Applied(message_id=event["jti"]))
    license = db.session.get_one(License, event["license"])
    license.seats = License.seats + event["seats"]
    db.session.commit()
