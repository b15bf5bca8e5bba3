"""Whoever follows a link is not signed in. Two notes of Acme are in one folder; Alice shares the first of them.

A link that is old is one that was made with the application's clock set back.
"""

from datetime import timedelta

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

ACME, GLOBEX = 1, 2
ALICE = 1
PLAN, SALARIES = 1, 2  # notes in one folder


def prepare(example: Example, s: Stage) -> None:
    with s.app.app_context():
        for note_id, text in ((PLAN, "plan"), (SALARIES, "salaries")):
            db.session.add(example.Note(id=note_id, folder_id=7, organization_id=ACME, text=text))
        db.session.commit()


def link(s: Stage, editable: bool = False) -> str:
    """The token of a link that Alice makes to the plan."""
    answer = s.client("alice").post(f"/notes/{PLAN}/links", json={"editable": editable})
    assert answer.status_code == 201
    return str(answer.json["token"])


def text(example: Example, s: Stage, note_id: int = PLAN) -> str:
    with s.app.app_context():
        return str(db.session.get(example.Note, note_id).text)


def show(s: Stage, token: str, note_id: int = PLAN) -> tuple[int, str | None]:
    answer = s.app.test_client().get(f"/shared/{token}/notes/{note_id}")
    return answer.status_code, answer.json["text"] if answer.status_code == 200 else None


def write(s: Stage, token: str, note_id: int = PLAN) -> int:
    return s.app.test_client().put(f"/shared/{token}/notes/{note_id}", json={"text": "defaced"}).status_code


def observed(s: Stage, token: str, note_id: int = PLAN, content: str = "plan") -> Outcome:
    """What somebody with the token sees of a note."""
    code, seen = show(s, token, note_id)
    return outcome(gained=seen == content, refused=code == 404 and seen is None, evidence=f"{code} {seen}")


def exploit_sibling(example: Example) -> Outcome:
    """A customer who was sent a link to the plan counts on and reads the salaries in the same folder."""
    with stage(example) as s:
        prepare(example, s)
        return observed(s, link(s), SALARIES, "salaries")


def exploit_writing(example: Example) -> Outcome:
    """The customer, who was to view the plan, writes it with the same token."""
    with stage(example) as s:
        prepare(example, s)
        code = write(s, link(s))
        now = text(example, s)
    return outcome(gained=now == "defaced", refused=code == 403 and now == "plan", evidence=f"{code} {now}")


def exploit_withdrawn(example: Example) -> Outcome:
    """Alice switches sharing off, and the link goes on showing the plan."""
    with stage(example) as s:
        prepare(example, s)
        token = link(s)
        assert s.client("alice").delete(f"/notes/{PLAN}/links").status_code == 204
        return observed(s, token)


def exploit_expired(example: Example) -> Outcome:
    """Somebody finds a link of last year in an old mail, and it still works."""
    with stage(example) as s:
        prepare(example, s)
        real = example.now
        example.now = lambda: real() - timedelta(days=365)  # type: ignore[attr-defined]
        token = link(s)
        example.now = real  # type: ignore[attr-defined]
        return observed(s, token)


def exploit_issuer_left(example: Example) -> Outcome:
    """Alice, who has gone to Globex, opens Acme's plan by a link that she once made."""
    with stage(example) as s:
        prepare(example, s)
        token = link(s)
        with s.app.app_context():
            db.session.get(User, ALICE).organization_id = GLOBEX
            db.session.commit()
        return observed(s, token)


def exploit_issuer_deleted(example: Example) -> Outcome:
    """Alice's account is deleted, and a link of hers stays open to whoever has it."""
    with stage(example) as s:
        prepare(example, s)
        token = link(s)
        with s.app.app_context():
            db.session.delete(db.session.get(User, ALICE))
            db.session.commit()
        return observed(s, token)


def legitimate_view(example: Example) -> None:
    """A link for viewing shows the one note, as long as it is shared; a guessed one shows nothing."""
    with stage(example) as s:
        prepare(example, s)
        assert show(s, link(s)) == (200, "plan")
        assert show(s, "guessed")[0] == 404
        assert s.client("mallory").post(f"/notes/{PLAN}/links", json={"editable": True}).status_code == 404
        assert s.client("mallory").delete(f"/notes/{PLAN}/links").status_code == 404


def legitimate_write(example: Example) -> None:
    """A link for writing shows the note and changes it, beside another one for viewing."""
    with stage(example) as s:
        prepare(example, s)
        viewing, writing = link(s), link(s, editable=True)
        assert show(s, writing) == (200, "plan")
        assert write(s, writing) == 204
        assert show(s, viewing) == (200, "defaced")
        assert text(example, s, SALARIES) == "salaries"
