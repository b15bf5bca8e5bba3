"""Licences follow the messages that billing has signed; person and organization are looked up, and each counts once."""

import hmac
import json
from dataclasses import dataclass

from flask import Blueprint, current_app, jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


class License(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    seats = db.Column(db.Integer, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)


class Applied(db.Model):
    message_id = db.Column(db.String, primary_key=True)


@dataclass
class Message:
    """Stands for what the client of a broker hands to a consumer."""

    body: bytes
    signature: bytes = b""


# region example
bp = Blueprint("licenses", __name__)


@bp.get("/licenses/<int:license_id>")
@login_required
def show_license(license_id):
    own = db.select(License).filter_by(id=license_id, organization_id=current_user.organization_id)
    return jsonify(db.first_or_404(own).seats)


def seats_bought(message):
    signature = hmac.digest(current_app.config["BILLING_KEY"], message.body, "sha256")
    if not hmac.compare_digest(signature, message.signature):
        raise PermissionError("not sent by billing")
    event = json.loads(message.body)
    # region template
    license = db.session.get(License, event["license_id"])
    buyers = db.select(User).filter_by(role="admin", organization_id=license.organization_id)
    if db.session.scalar(buyers.filter_by(id=event["actor_id"])) is None:
        raise PermissionError
    if db.session.get(Applied, event["id"]):
        return
    db.session.add(Applied(message_id=event["id"]))
    # endregion
    license.seats += event["seats"]
    db.session.commit()


# endregion
