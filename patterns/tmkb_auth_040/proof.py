"""Sockets and rooms are a stand-in of a few lines for a socket server: handlers are called as it calls them, after the
handshake has verified the user. Nothing is claimed about transports or about several server processes."""

from typing import Any

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

ACME, GLOBEX = 1, 2  # organizations, and the channel of each
BOB, MALLORY = 2, 3


def open_channels(example: Example, s: Stage) -> None:
    with s.app.app_context():
        db.session.add_all([example.Channel(id=number, organization_id=number) for number in (ACME, GLOBEX)])
        db.session.commit()


def join(example: Example, s: Stage, user_id: int, channel_id: int) -> tuple[Any, Any]:
    """A socket of this user, and what joining was answered with; a refusal is an answer."""
    socket = example.Socket(user_id)
    with s.app.app_context():
        try:
            return socket, example.on_join(socket, channel_id)
        except PermissionError as refusal:
            return socket, refusal


def post(s: Stage, user: str, channel_id: int, text: str) -> int:
    return s.client(user).post(f"/channels/{channel_id}/messages", json={"text": text}).status_code


def exploit_foreign_channel(example: Example) -> Outcome:
    """Bob of Acme joins the channel of Globex over his own socket and reads what Mallory writes there."""
    with stage(example) as s:
        open_channels(example, s)
        socket, answer = join(example, s, BOB, GLOBEX)
        assert post(s, "mallory", GLOBEX, "our offer") == 204
    return outcome(
        gained=socket.received == ["our offer"],
        refused=isinstance(answer, PermissionError) and socket.received == [],
        evidence=(answer, socket.received),
    )


def exploit_foreign_presence(example: Example) -> Outcome:
    """Bob joins it only to learn who of Globex is online at night."""
    with stage(example) as s:
        open_channels(example, s)
        join(example, s, MALLORY, GLOBEX)
        _, answer = join(example, s, BOB, GLOBEX)
    return outcome(
        gained=isinstance(answer, dict) and MALLORY in answer["online"],
        refused=isinstance(answer, PermissionError),
        evidence=answer,
    )


def exploit_removed_member(example: Example) -> Outcome:
    """Alice removes Bob from Acme; the socket that he leaves open goes on receiving."""
    with stage(example) as s:
        open_channels(example, s)
        socket, _ = join(example, s, BOB, ACME)
        assert post(s, "alice", ACME, "welcome") == 204
        assert s.client("alice").delete(f"/members/{BOB}").status_code == 204
        assert post(s, "alice", ACME, "about Bob") == 204
    return outcome(
        gained="about Bob" in socket.received, refused=socket.received == ["welcome"], evidence=socket.received
    )


def exploit_deleted_account(example: Example) -> Outcome:
    """A nightly clean-up deletes Bob's account past that endpoint; his socket stays in the room."""
    with stage(example) as s:
        open_channels(example, s)
        socket, _ = join(example, s, BOB, ACME)
        assert post(s, "alice", ACME, "welcome") == 204
        with s.app.app_context():
            db.session.delete(db.session.get(User, BOB))
            db.session.commit()
        assert post(s, "alice", ACME, "about Bob") == 204
    return outcome(
        gained="about Bob" in socket.received, refused=socket.received == ["welcome"], evidence=socket.received
    )


def legitimate_member(example: Example) -> None:
    """Bob joins Acme's channel, sees that he is online, and receives each message once."""
    with stage(example) as s:
        open_channels(example, s)
        socket, answer = join(example, s, BOB, ACME)
        assert answer == {"online": [BOB]}
        assert post(s, "alice", ACME, "first") == post(s, "bob", ACME, "second") == 204
        assert post(s, "mallory", ACME, "spam") == 404
        assert socket.received == ["first", "second"]


def legitimate_others_stay(example: Example) -> None:
    """After Bob's removal, which only an administrator can do, the others go on receiving."""
    with stage(example) as s:
        open_channels(example, s)
        join(example, s, BOB, ACME)
        socket, answer = join(example, s, 1, ACME)
        assert answer == {"online": [BOB, 1]}
        assert s.client("bob").delete("/members/1").status_code == 403
        assert s.client("alice").delete(f"/members/{BOB}").status_code == 204
        assert post(s, "alice", ACME, "still here") == 204
        assert socket.received == ["still here"]
