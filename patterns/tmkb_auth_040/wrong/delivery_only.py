"""Messages are limited to readers, but everyone joins and sees who is online."""

from app import online, readers, rooms, socketio


@socketio.on("join")
def on_join(socket, data):
    rooms[data["channel"]].add(socket)
    return {"online": online(data["channel"])}


@socketio.on("message")
def on_message(socket, data):
    allowed = readers(data["channel"])
    if socket.user_id not in allowed:
        raise PermissionError("no such channel")
    for other in rooms[data["channel"]]:
        if other.user_id in allowed:
            other.send(data["text"])
