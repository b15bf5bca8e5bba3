"""Each event checks the sender, and removing a member closes that member's subscriptions."""

from app import member_removed, online, readers, rooms, socketio


# region example
@socketio.on("join")
def on_join(socket, data):
    if socket.user_id not in readers(data["channel"]):
        raise PermissionError("no such channel")
    rooms[data["channel"]].add(socket)
    return {"online": online(data["channel"])}


@socketio.on("message")
def on_message(socket, data):
    if socket.user_id not in readers(data["channel"]):
        raise PermissionError("no such channel")
    for other in rooms[data["channel"]]:
        other.send(data["text"])


@member_removed.connect
def drop_subscriptions(_sender, user_id):
    for sockets in rooms.values():
        sockets -= {socket for socket in sockets if socket.user_id == user_id}


# endregion
