"""Files lie on a real disk, in a temporary folder that all organizations share; a bucket's prefixes behave alike,
except that a bucket does not resolve ".." by itself."""

import io
import os

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME, BOB = 1, 2


def upload(s: Stage, user: str, name: str, content: str) -> str:
    answer = s.client(user).post("/files", data={"file": (io.BytesIO(content.encode()), name)})
    assert answer.status_code == 201, answer.status
    return str(answer.json["key"])


def download(s: Stage, user: str, key: str) -> tuple[int, str]:
    answer = s.client(user).get(f"/files/{key}")
    return answer.status_code, answer.text if answer.status_code == 200 else ""


def exploit_overwritten(example: Example) -> Outcome:
    """Bob of Acme uploads a file whose name climbs into Globex's folder, and Globex shows his logo from then on."""
    with stage(example, UPLOADS=os.getcwd()) as s:
        key = upload(s, "mallory", "logo.png", "logo of Globex")
        upload(s, "bob", f"../{key}", "forged")
        answer = download(s, "mallory", key)
    return outcome(gained=answer == (200, "forged"), refused=answer == (200, "logo of Globex"), evidence=answer)


def exploit_foreign_key(example: Example) -> Outcome:
    """Bob asks for a key of Globex, which he has seen in a link or guessed, and reads its report."""
    with stage(example, UPLOADS=os.getcwd()) as s:
        key = upload(s, "mallory", "report.pdf", "report of Globex")
        answer = download(s, "bob", key)
    return outcome(gained=answer == (200, "report of Globex"), refused=answer == (404, ""), evidence=answer)


def exploit_colleagues_key(example: Example) -> Outcome:
    """He does the same with a key that Alice of his own organization has for her private file."""
    with stage(example, UPLOADS=os.getcwd()) as s:
        key = upload(s, "alice", "salary.pdf", "salary of Alice")
        answer = download(s, "bob", key)
    return outcome(gained=answer == (200, "salary of Alice"), refused=answer == (404, ""), evidence=answer)


def exploit_planted_record(example: Example) -> Outcome:
    """Bob uses a record from before the fix, his own by the database, whose key leaves Acme's folder."""
    with stage(example, UPLOADS=os.getcwd()) as s:
        upload(s, "bob", "notes.txt", "notes")
        key = f"{ACME}/../{upload(s, 'mallory', 'report.pdf', 'report of Globex')}"
        with s.app.app_context():
            db.session.add(example.StoredFile(key=key, name="report.pdf", owner_id=BOB))
            db.session.commit()
        answer = download(s, "bob", key)
    return outcome(gained=answer == (200, "report of Globex"), refused=answer == (404, ""), evidence=answer)


def legitimate_round_trip(example: Example) -> None:
    """Bob downloads what he uploaded, under the name he gave it."""
    with stage(example, UPLOADS=os.getcwd()) as s:
        first, second = upload(s, "bob", "a.txt", "first"), upload(s, "bob", "b.txt", "second")
        answer = s.client("bob").get(f"/files/{second}")
        assert (answer.status_code, answer.text) == (200, "second")
        assert "b.txt" in answer.headers["Content-Disposition"]
        assert download(s, "bob", first) == (200, "first")


def legitimate_same_name(example: Example) -> None:
    """Both organizations keep a logo.png, and each gets its own."""
    with stage(example, UPLOADS=os.getcwd()) as s:
        ours, theirs = upload(s, "bob", "logo.png", "Acme"), upload(s, "mallory", "logo.png", "Globex")
        assert download(s, "bob", ours) == (200, "Acme")
        assert download(s, "mallory", theirs) == (200, "Globex")
