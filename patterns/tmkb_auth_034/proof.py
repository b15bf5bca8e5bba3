"""The store is a stand-in for a bucket with pre-signed addresses: twenty lines that honour what was signed, by a clock
that the proof moves. Nothing is claimed about one provider's signature, policies or headers."""

from typing import Any

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

ACME, GLOBEX = 1, 2
BOB = 2
OWN, PAGE, FOREIGN = "acme/7f3a.pdf", "acme/91bc.html", "globex/2d40.pdf"
DAY = 24 * 3600


def keep(example: Example, s: Stage) -> None:
    with s.app.app_context():
        for key, organization_id in [(OWN, ACME), (PAGE, ACME), (FOREIGN, GLOBEX)]:
            db.session.add(example.Attachment(key=key, organization_id=organization_id))
            example.s3.objects[key] = f"content of {key}"
        db.session.commit()


def signed(s: Stage, **query: str) -> tuple[int, str]:
    """What Bob is answered: status and address."""
    answer = s.client("bob").get("/attachments/url", query_string=query)
    return answer.status_code, answer.json["url"] if answer.status_code == 200 else ""


def open_address(example: Example, url: str) -> tuple[Any, ...]:
    return tuple(example.s3.request("get_object", url))


def exploit_foreign_key(example: Example) -> Outcome:
    """Bob of Acme asks for an address of a key under globex/ and reads Globex's contract from the store."""
    with stage(example) as s:
        keep(example, s)
        assert s.client("bob").get("/attachments").json == [OWN, PAGE]
        status, url = signed(s, key=FOREIGN)
        content = open_address(example, url)[2] if url else None
    return outcome(
        gained=content == f"content of {FOREIGN}", refused=status == 404 and content is None, evidence=(status, content)
    )


def exploit_removed_member(example: Example) -> Outcome:
    """Bob keeps an address, is removed from Acme, and opens it the day after; the store has never heard of it."""
    with stage(example) as s:
        keep(example, s)
        _, url = signed(s, key=OWN)
        with s.app.app_context():
            db.session.get(User, BOB).organization_id = None
            db.session.commit()
        example.s3.clock += DAY
        status, _, content = open_address(example, url)
    return outcome(
        gained=content == f"content of {OWN}", refused=status == 403 and content is None, evidence=(status, content)
    )


def exploit_overwritten(example: Example) -> Outcome:
    """Bob, who may read a file, names another operation and replaces its content."""
    with stage(example) as s:
        keep(example, s)
        _, url = signed(s, key=OWN, operation="put_object")
        status, _, _ = example.s3.request("put_object", url, "forged")
        content = example.s3.objects[OWN]
    return outcome(
        gained=content == "forged",
        refused=status == 403 and content == f"content of {OWN}",
        evidence=(status, content),
    )


def exploit_shown_inline(example: Example) -> Outcome:
    """Bob passes on the address of a page he uploaded, and browsers show it as one of the company's own."""
    with stage(example) as s:
        keep(example, s)
        _, url = signed(s, key=PAGE)
        status, disposition, _ = open_address(example, url)
    return outcome(
        gained=status == 200 and disposition is None,
        refused=disposition == "attachment",
        evidence=(status, disposition),
    )


def legitimate_download(example: Example) -> None:
    """Bob asks for a fresh address each time and reads his organization's file through it."""
    with stage(example) as s:
        keep(example, s)
        for _ in range(2):
            status, url = signed(s, key=OWN)
            example.s3.clock += 60
            assert status == 200
            assert open_address(example, url)[2] == f"content of {OWN}"
            example.s3.clock += DAY


def legitimate_each_their_own(example: Example) -> None:
    """Mallory lists and reads what belongs to Globex."""
    with stage(example) as s:
        keep(example, s)
        mallory = s.client("mallory")
        (key,) = mallory.get("/attachments").json
        url = mallory.get("/attachments/url", query_string={"key": key}).json["url"]
        assert open_address(example, url)[2] == f"content of {FOREIGN}"
