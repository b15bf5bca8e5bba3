"""Chat channels of organizations over a socket server, whose events a version of the code handles.

The socket server is a stub of a few lines: a POST opens a socket or sends an event, a GET reads what it has received.
As with real sockets, the user is known from the handshake, and later events are not authenticated again.
"""

from collections import defaultdict
from uuid import uuid4

from blinker import Signal
from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db


class Channel(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer, nullable=False)
    admins_only = mapped_column(db.Boolean)


class Socket:
    """An open connection of the user who made the handshake."""

    def __init__(self, user):
        self.user_id, self.organization_id, self.role = user.id, user.organization_id, user.role
        self.received = []

    def send(self, text):
        self.received.append(text)


class SocketServer:
    def __init__(self):
        self.sockets, self.handlers = {}, {}

    def on(self, event):
        """Register a handler, which is called with the socket and the data of the event."""

        def register(handler):
            self.handlers[event] = handler
            return handler

        return register


bp = Blueprint("channels", __name__)
socketio = SocketServer()
rooms = defaultdict(set)
member_removed = Signal()


def readers(channel_id):
    """Return the ids of the users who may read the channel now."""
    users = db.select(User.id).join(Channel, Channel.organization_id == User.organization_id)
    allowed = ~Channel.admins_only | (User.role == "admin")
    return set(db.session.scalars(users.where(Channel.id == channel_id, allowed)))


def online(channel_id):
    """Return the ids of the readers who have joined the channel."""
    allowed = readers(channel_id)
    return sorted(socket.user_id for socket in rooms[channel_id] if socket.user_id in allowed)


@bp.post("/socket")
@login_required
def connect():
    sid = uuid4().hex
    socketio.sockets[sid] = Socket(current_user)
    return {"sid": sid}, 201


@bp.post("/socket/<sid>/<event>")
def receive(sid, event):
    if sid not in socketio.sockets:
        abort(404)
    try:
        return socketio.handlers[event](socketio.sockets[sid], request.get_json()) or ("", 204)
    except PermissionError as error:
        return {"error": str(error)}, 403


@bp.get("/socket/<sid>")
def received(sid):
    return socketio.sockets[sid].received if sid in socketio.sockets else abort(404)


@bp.delete("/members/<int:user_id>")
@login_required
def remove_member(user_id):
    if current_user.role != "admin":
        abort(403)
    members = db.select(User).filter_by(organization_id=current_user.organization_id)
    db.first_or_404(members.filter_by(id=user_id)).organization_id = None
    db.session.commit()
    member_removed.send(user_id=user_id)
    return "", 204


def event_channels():
    """Acme has channel 1 and, for administrators, channel 3. Globex has channel 2."""
    for number, organization_id in [(1, 1), (2, 2), (3, 1)]:
        db.session.add(Channel(id=number, organization_id=organization_id, admins_only=number == 3))


def event_move_channel(channel_id, organization_id):
    db.session.get(Channel, channel_id).organization_id = organization_id


def state_rooms():
    return [[channel, sorted(socket.user_id for socket in sockets)] for channel, sockets in rooms.items() if sockets]


def state_received():
    return [[socket.user_id, socket.received] for socket in socketio.sockets.values()]
