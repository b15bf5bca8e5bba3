"""Seats are added because of a message. Its publisher, actor, role and organization are not checked."""

import jwt
from app import License, consumes

from tmkb.authoring.proofs.stage import db


# region example
@consumes("seats_bought")
def seats_bought(message):
    event = jwt.decode(message, options={"verify_signature": False})
    if event["role"] != "admin":
        raise PermissionError
    license = db.session.get_one(License, event["license"])
    license.seats = License.seats + event["seats"]
    db.session.commit()


# endregion
