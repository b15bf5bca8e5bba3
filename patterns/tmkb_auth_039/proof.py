"""A worker outside any request delivers, through the real serializer. What would be sent to a watcher's address is kept
in a list: the sender is a stand-in, and nothing is claimed about addresses, signatures or retries."""

from typing import Any

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

ACME, GLOBEX = 1, 2  # organizations, and the ticket of each
ALICE, BOB = 1, 2
BOBS = "https://hooks.example/bob"


def subscribe(example: Example, s: Stage, user_id: int = BOB, url: str = BOBS, role: str = "guest") -> None:
    """This user, with this role, watches Acme's ticket."""
    with s.app.app_context():
        if db.session.get(example.Ticket, ACME) is None:
            db.session.add_all([example.Ticket(id=number, organization_id=number) for number in (ACME, GLOBEX)])
            db.session.flush()
        db.session.add(example.Watch(ticket_id=ACME, user_id=user_id, url=url))
        db.session.get(User, user_id).role = role
        db.session.commit()


def comment(s: Stage, text: str, internal: bool = False) -> int:
    answer = s.client("alice").post(
        f"/tickets/{ACME}/comments", json={"text": text, "minutes": 90, "internal": internal}
    )
    assert answer.status_code == 201, answer.status
    return int(answer.json["id"])


def on_screen(s: Stage, user: str, comment_id: int) -> Any:
    answer = s.client(user).get(f"/comments/{comment_id}")
    return answer.json if answer.status_code == 200 else answer.status_code


def exploit_internal_comment(example: Example) -> Outcome:
    """Bob, a guest who watches a ticket, is sent a comment that is marked internal and that his screen refuses."""
    with stage(example) as s:
        subscribe(example, s)
        assert on_screen(s, "bob", comment(s, "the client is bluffing", internal=True)) == 404
        results = s.results()
        texts = [body["text"] for _, body in example.sent]
    return outcome(
        gained="the client is bluffing" in texts, refused=(results, texts) == ([None], []), evidence=(results, texts)
    )


def exploit_hidden_field(example: Example) -> Outcome:
    """Bob reads in the message how many minutes were billed, which guests are not shown."""
    with stage(example) as s:
        subscribe(example, s)
        assert on_screen(s, "bob", comment(s, "done")) == {"text": "done"}
        results = s.results()
        bodies = [body for _, body in example.sent]
    return outcome(
        gained=any("minutes" in body for body in bodies),
        refused=(results, bodies) == ([None], [{"text": "done"}]),
        evidence=(results, bodies),
    )


def exploit_removed_member(example: Example) -> Outcome:
    """Bob is removed from Acme between the comment and its delivery; his hook goes on receiving."""
    with stage(example) as s:
        subscribe(example, s, role="member")
        comment(s, "about Bob")
        with s.app.app_context():
            db.session.get(User, BOB).organization_id = None
            db.session.commit()
        results = s.results()
    return outcome(
        gained=[url for url, _ in example.sent] == [BOBS],
        refused=(results, example.sent) == ([None], []),
        evidence=(results, example.sent),
    )


def exploit_deleted_account(example: Example) -> Outcome:
    """Bob's account is deleted, and what he subscribed to is not."""
    with stage(example) as s:
        subscribe(example, s, role="member")
        with s.app.app_context():
            db.session.delete(db.session.get(User, BOB))
            db.session.commit()
        comment(s, "about Bob")
        results = s.results()
    return outcome(
        gained=[url for url, _ in example.sent] == [BOBS],
        refused=(results, example.sent) == ([None], []),
        evidence=(results, example.sent),
    )


def legitimate_member(example: Example) -> None:
    """Bob, a member, is notified of an internal comment with everything that his screen shows."""
    with stage(example) as s:
        subscribe(example, s, role="member")
        shown = on_screen(s, "bob", comment(s, "call them back", internal=True))
        assert s.results() == [None]
        assert example.sent == [(BOBS, shown)] == [(BOBS, {"text": "call them back", "minutes": 90})]


def legitimate_all_watchers(example: Example) -> None:
    """A guest and an administrator who watch the same ticket are both notified, once."""
    with stage(example) as s:
        subscribe(example, s)
        subscribe(example, s, ALICE, "https://hooks.example/alice", "admin")
        comment(s, "done")
        assert s.results() == [None]
        assert [(url, body["text"]) for url, body in example.sent] == [
            (BOBS, "done"),
            ("https://hooks.example/alice", "done"),
        ]
