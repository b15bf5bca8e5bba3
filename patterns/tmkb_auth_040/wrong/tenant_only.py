"""The organization is checked, but not the role that the channel requires."""

from app import Channel, online, rooms, socketio

from tmkb.authoring.proofs.stage import User, db


def members(channel_id):
    users = db.select(User.id).join(Channel, Channel.organization_id == User.organization_id)
    return set(db.session.scalars(users.where(Channel.id == channel_id)))


@socketio.on("join")
def on_join(socket, data):
    if socket.user_id not in members(data["channel"]):
        raise PermissionError("no such channel")
    rooms[data["channel"]].add(socket)
    return {"online": online(data["channel"])}


@socketio.on("message")
def on_message(socket, data):
    allowed = members(data["channel"])
    if socket.user_id not in allowed:
        raise PermissionError("no such channel")
    for other in rooms[data["channel"]]:
        if other.user_id in allowed:
            other.send(data["text"])
