"""The gateway in front is not run: the proof sends what a gateway that lets only GET through would let through."""

from werkzeug.test import TestResponse

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

TICKET = "/tickets/1"
SHOWN = {"subject": "Payroll export fails", "reply": ""}


def open_ticket(example: Example, s: Stage) -> None:
    with s.app.app_context():
        db.session.add(example.Ticket(id=1, organization_id=1, subject=SHOWN["subject"]))
        db.session.commit()


def exists(example: Example, s: Stage) -> bool:
    with s.app.app_context():
        return db.session.get(example.Ticket, 1) is not None


def override(verb: str) -> dict[str, str]:
    return {"X-HTTP-Method-Override": verb}


def observed(example: Example, s: Stage, answer: TestResponse, answered: bool) -> Outcome:
    """What became of the ticket; ``answered``: whether the answer is the one that a refusal has."""
    kept = exists(example, s)
    return outcome(gained=not kept, refused=kept and answered, evidence=answer.status)


def exploit_tunnelled_delete(example: Example) -> Outcome:
    """Bob, a member who may only reply, posts to Acme's ticket with X-HTTP-Method-Override: DELETE, and it is gone."""
    with stage(example) as s:
        open_ticket(example, s)
        answer = s.client("bob").post(TICKET, headers=override("DELETE"), json={"reply": "Done"})
        return observed(example, s, answer, answer.status_code == 403)


def exploit_lower_case(example: Example) -> Outcome:
    """Bob writes the verb as delete, which a comparison with DELETE does not match."""
    with stage(example) as s:
        open_ticket(example, s)
        answer = s.client("bob").post(TICKET, headers=override("delete"), json={"reply": "Done"})
        return observed(example, s, answer, answer.status_code == 403)


def exploit_read_only_key(example: Example) -> Outcome:
    """Mallory holds a key of Alice's that the gateway restricts to GET, and sends a GET whose header says DELETE."""
    with stage(example) as s:
        open_ticket(example, s)
        answer = s.client("alice").get(TICKET, headers=override("DELETE"))
        return observed(example, s, answer, answer.json == SHOWN)


def legitimate_member(example: Example) -> None:
    """Bob reads the ticket and replies; plain DELETE and verbs that nobody serves are refused."""
    with stage(example) as s:
        open_ticket(example, s)
        bob = s.client("bob")
        assert bob.post(TICKET, json={"reply": "Fixed"}).status_code == 204
        assert bob.get(TICKET).json == SHOWN | {"reply": "Fixed"}
        assert bob.delete(TICKET).status_code == 403
        assert bob.post(TICKET, headers=override("PURGE"), json={"reply": "Done"}).status_code == 405
        assert bob.get(TICKET).json == SHOWN | {"reply": "Fixed"}


def legitimate_delete(example: Example) -> None:
    """Alice, an administrator, deletes the ticket; Mallory and people who are not signed in cannot."""
    with stage(example) as s:
        open_ticket(example, s)
        assert s.client("mallory").delete(TICKET).status_code == 404
        assert s.app.test_client().delete(TICKET).status_code == 401
        assert exists(example, s)
        assert s.client("alice").delete(TICKET).status_code == 204
        assert not exists(example, s)


def legitimate_old_client(example: Example) -> None:
    """Alice deletes with a client that can send nothing but GET and POST."""
    with stage(example) as s:
        open_ticket(example, s)
        assert s.client("alice").post(TICKET, headers=override("DELETE")).status_code == 204
        assert not exists(example, s)
