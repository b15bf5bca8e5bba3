"""Organization and role are those that the user had at the handshake."""

from app import Channel, online, rooms, socketio

from tmkb.authoring.proofs.stage import db


def may_read(socket, channel_id):
    channel = db.session.get(Channel, channel_id)
    if channel is None or channel.organization_id != socket.organization_id:
        return False
    return socket.role == "admin" or not channel.admins_only


@socketio.on("join")
def on_join(socket, data):
    if not may_read(socket, data["channel"]):
        raise PermissionError("no such channel")
    rooms[data["channel"]].add(socket)
    return {"online": online(data["channel"])}


@socketio.on("message")
def on_message(socket, data):
    if not may_read(socket, data["channel"]):
        raise PermissionError("no such channel")
    for other in rooms[data["channel"]]:
        if may_read(other, data["channel"]):
            other.send(data["text"])
