"""Joining asks whether the user reads this channel, and whoever is removed loses every open subscription."""

from collections import defaultdict

from flask import Blueprint, abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


class Channel(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.Integer, nullable=False)


class Socket:
    """An open connection; the server knows since the handshake whose it is."""

    def __init__(self, user_id):
        self.user_id, self.received = user_id, []

    def send(self, text):
        self.received.append(text)


rooms = defaultdict(list)


# region example
bp = Blueprint("channels", __name__)


def readers(channel_id):
    of_organization = db.select(User.id).join(Channel, Channel.organization_id == User.organization_id)
    return set(db.session.scalars(of_organization.where(Channel.id == channel_id)))


def deliver(channel_id, text):
    for socket in rooms[channel_id]:
        socket.send(text)


def on_join(socket, channel_id):
    if socket.user_id not in readers(channel_id):
        raise PermissionError("not a reader of this channel")
    rooms[channel_id].append(socket)
    return {"online": [other.user_id for other in rooms[channel_id]]}


@bp.post("/channels/<int:channel_id>/messages")
@login_required
def post_message(channel_id):
    if current_user.id not in readers(channel_id):
        abort(404)
    deliver(channel_id, request.json["text"])
    return "", 204


@bp.delete("/members/<int:user_id>")
@login_required
def remove_member(user_id):
    if current_user.role != "admin":
        abort(403)
    member = db.first_or_404(db.select(User).filter_by(id=user_id, organization_id=current_user.organization_id))
    member.organization_id = None
    db.session.commit()
    for sockets in rooms.values():
        sockets[:] = [socket for socket in sockets if socket.user_id != user_id]
    return "", 204


# endregion
