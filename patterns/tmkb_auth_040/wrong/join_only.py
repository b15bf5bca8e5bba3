"""Joining is checked, but sockets that have not joined send messages, and former readers receive them."""

from app import online, readers, rooms, socketio


@socketio.on("join")
def on_join(socket, data):
    if socket.user_id not in readers(data["channel"]):
        raise PermissionError("no such channel")
    rooms[data["channel"]].add(socket)
    return {"online": online(data["channel"])}


@socketio.on("message")
def on_message(socket, data):
    for other in rooms[data["channel"]]:
        other.send(data["text"])
