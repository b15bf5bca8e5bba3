"""The signature and the audience are verified; the role and the license are taken from the message."""

import jwt
from app import KEYS, Applied, License, consumes

from tmkb.authoring.proofs.stage import db


def verified(message):
    event = jwt.decode(message, KEYS["billing"], ["HS256"], audience="seats_bought")
    if event["role"] != "admin":
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
