"""Each event checks the sender, and each message is delivered only to sockets of the users who may read it now."""

from app import online, readers, rooms, socketio


# region example
@socketio.on("join")
def on_join(socket, data):
    if socket.user_id not in readers(data["channel"]):
        raise PermissionError("no such channel")
    rooms[data["channel"]].add(socket)
    return {"online": online(data["channel"])}


# region template
@socketio.on("message")
def on_message(socket, data):
    allowed = readers(data["channel"])
    if socket.user_id not in allowed:
        raise PermissionError("no such channel")
    for other in rooms[data["channel"]]:
        if other.user_id in allowed:
            other.send(data["text"])


# endregion
# endregion
