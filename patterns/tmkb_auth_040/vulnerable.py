"""The handshake authenticates the user, but no event checks which channel the user may read."""

from app import online, rooms, socketio


# region example
@socketio.on("join")
def on_join(socket, data):
    rooms[data["channel"]].add(socket)
    return {"online": online(data["channel"])}


@socketio.on("message")
def on_message(socket, data):
    for other in rooms[data["channel"]]:
        other.send(data["text"])


# endregion
