"""Joining and sending are checked, but a socket that has joined receives everything from then on."""

from app import online, readers, rooms, socketio


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
