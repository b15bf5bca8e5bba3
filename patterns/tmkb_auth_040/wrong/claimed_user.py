"""The event says which user sends it."""

from app import online, readers, rooms, socketio


@socketio.on("join")
def on_join(socket, data):
    if data.get("user_id", socket.user_id) not in readers(data["channel"]):
        raise PermissionError("no such channel")
    rooms[data["channel"]].add(socket)
    return {"online": online(data["channel"])}


@socketio.on("message")
def on_message(socket, data):
    allowed = readers(data["channel"])
    if data.get("user_id", socket.user_id) not in allowed:
        raise PermissionError("no such channel")
    for other in rooms[data["channel"]]:
        if other.user_id in allowed:
            other.send(data["text"])
