"""Every message that billing signed is applied, of any type."""

import jwt
from app import KEYS, Applied, License, consumes

from tmkb.authoring.proofs.stage import User, db


def verified(message):
    event = jwt.decode(message, KEYS["billing"], ["HS256"], options={"verify_aud": False})
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
