"""Licences follow the messages of billing; whatever a message says of person, role and organization is believed."""

import json
from dataclasses import dataclass

from flask import Blueprint, jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


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
    event = json.loads(message.body)
    if event["role"] != "admin":
        raise PermissionError
    license = db.session.get(License, event["license_id"])
    license.seats += event["seats"]
    db.session.commit()


# endregion
