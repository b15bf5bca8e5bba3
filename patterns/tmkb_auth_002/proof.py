"""Notes are put straight into the database; everything that is read goes through the two endpoints."""

from datetime import datetime
from typing import Any

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME, GLOBEX = 1, 2
ALICE, BOB, MALLORY = 1, 2, 3
SECRET = "will not renew"
NOTE = "/notes/1"


def write(example: Example, s: Stage, number: int = 1, **values: Any) -> None:
    """A note of Alice for all of Acme, unless told otherwise."""
    facts = {"customer": "Initech", "text": SECRET, "author_id": ALICE, "organization_id": ACME, **values}
    with s.app.app_context():
        db.session.add(example.Note(id=number, **facts))
        db.session.commit()


def listed(s: Stage, user: str) -> list[int]:
    answer = s.client(user).get("/notes")
    assert answer.status_code == 200
    return [note["id"] for note in answer.json]


def opened(s: Stage) -> Outcome:
    """Whether Bob gets to see, as an item, what his list does not have."""
    assert listed(s, "bob") == []
    answer = s.client("bob").get(NOTE)
    return outcome(
        gained=SECRET in answer.text,
        refused=answer.status_code == 404 and SECRET not in answer.text,
        evidence=answer.text,
    )


def exploit_private_note(example: Example) -> Outcome:
    """Alice of Acme writes a private note, which Bob's list leaves out; he opens it by its number."""
    with stage(example) as s:
        write(example, s, private=True)
        return opened(s)


def exploit_kept_link(example: Example) -> Outcome:
    """Alice makes a shared note private; it vanishes from Bob's list, and the link he kept still opens it."""
    with stage(example) as s:
        write(example, s)
        assert SECRET in s.client("bob").get(NOTE).text
        with s.app.app_context():
            db.session.get(example.Note, 1).private = True
            db.session.commit()
        return opened(s)


def exploit_deleted_note(example: Example) -> Outcome:
    """Alice deletes a note; Bob can no longer open it, and still reads how it begins in the list."""
    with stage(example) as s:
        write(example, s, deleted_at=datetime(2026, 1, 1))
        assert s.client("bob").get(NOTE).status_code == 404
        answer = s.client("bob").get("/notes")
    return outcome(gained=SECRET in answer.text, refused=answer.json == [], evidence=answer.text)


def legitimate_reader(example: Example) -> None:
    """Bob lists and opens Alice's shared note and his own private one; Mallory of Globex has neither."""
    with stage(example) as s:
        write(example, s)
        write(example, s, 2, author_id=BOB, private=True)
        write(example, s, 3, author_id=MALLORY, organization_id=GLOBEX)
        assert listed(s, "bob") == [1, 2]
        assert listed(s, "mallory") == [3]
        for number in (1, 2):
            assert s.client("bob").get(f"/notes/{number}").json["text"] == SECRET
            assert s.client("mallory").get(f"/notes/{number}").status_code == 404


def legitimate_author(example: Example) -> None:
    """Alice keeps a long note to herself and then shares it; the list shows how it begins, its page the whole."""
    text = SECRET + ", as they told us on the phone last week"
    with stage(example) as s:
        write(example, s, private=True, text=text)
        assert (listed(s, "alice"), listed(s, "bob")) == ([1], [])
        assert s.client("alice").get(NOTE).json["text"] == text
        with s.app.app_context():
            db.session.get(example.Note, 1).private = False
            db.session.commit()
        assert s.client("bob").get("/notes").json == [{"id": 1, "customer": "Initech", "text": text[:40]}]
        assert s.client("bob").get(NOTE).json["text"] == text
