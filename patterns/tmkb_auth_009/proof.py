"""Members of Acme edit its claims together; the author submits one, and an admin who is not its author approves it."""

from typing import Any

from werkzeug.test import TestResponse

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ALICE, BOB = 1, 2
DRAFT, OTHER, ALICES = 1, 2, 3  # claims: two of Bob, one of Alice


def file_claims(example: Example, s: Stage, state: str = "draft") -> None:
    authors = {DRAFT: BOB, OTHER: BOB, ALICES: ALICE}
    with s.app.app_context():
        for claim_id, author_id in authors.items():
            db.session.add(example.Claim(id=claim_id, author_id=author_id, organization_id=1, amount=100, state=state))
        db.session.commit()


def claim(example: Example, s: Stage, claim_id: int) -> tuple[str, int]:
    with s.app.app_context():
        found: Any = db.session.get(example.Claim, claim_id)
        return found.state, found.amount


def ask(s: Stage, user: str, claim_id: int, **body: object) -> TestResponse:
    return s.client(user).patch(f"/claims/{claim_id}", json=body)


def attack(example: Example, user: str, claim_id: int, source: str, **body: object) -> Outcome:
    """What ``user`` reaches by sending ``body`` for a claim that is in the state ``source``."""
    with stage(example) as s:
        file_claims(example, s, source)
        answer = ask(s, user, claim_id, **body)
        now = claim(example, s, claim_id)
    wanted = (body.get("state", source), body.get("amount", 100))
    return outcome(
        gained=now == wanted,
        refused=now == (source, 100) and answer.status_code in (403, 409),
        evidence=(answer.status, now),
    )


def exploit_author_approves(example: Example) -> Outcome:
    """Bob sets the claim that he wrote and submitted to approved, through the update that he corrects it with."""
    return attack(example, "bob", DRAFT, "submitted", state="approved")


def exploit_colleague_approves(example: Example) -> Outcome:
    """Bob, who is no approver, approves the claim of his colleague Alice, which he may edit."""
    return attack(example, "bob", ALICES, "submitted", state="approved")


def exploit_self_approval(example: Example) -> Outcome:
    """Alice, who approves for Acme, approves the claim that she submitted herself."""
    return attack(example, "alice", ALICES, "submitted", state="approved")


def exploit_skipped_step(example: Example) -> Outcome:
    """Alice approves Bob's draft, which he has not submitted."""
    return attack(example, "alice", DRAFT, "draft", state="approved")


def exploit_submitted_for_another(example: Example) -> Outcome:
    """Alice submits Bob's draft in his place, so that she may approve it next."""
    return attack(example, "alice", DRAFT, "draft", state="submitted")


def exploit_resubmitted(example: Example) -> Outcome:
    """Bob sets a claim that was rejected for good back to submitted and waits for a less careful approver."""
    return attack(example, "bob", DRAFT, "rejected", state="submitted")


def exploit_changed_after_approval(example: Example) -> Outcome:
    """Bob raises the amount of a claim that is already approved."""
    return attack(example, "bob", DRAFT, "approved", amount=9000)


def exploit_born_approved(example: Example) -> Outcome:
    """Bob names the state when he creates a claim, and it starts out approved."""
    with stage(example) as s:
        answer = s.client("bob").post("/claims", json={"amount": 100, "state": "approved"})
        now = claim(example, s, 1)
    return outcome(gained=now[0] == "approved", refused=now == ("draft", 100), evidence=(answer.status, now))


def legitimate_approval(example: Example) -> None:
    """Bob creates a claim, both correct it, he submits and Alice approves; Mallory cannot find it."""
    with stage(example) as s:
        made = s.client("bob").post("/claims", json={"amount": 80})
        assert made.json == {"id": 1, "state": "draft"}
        assert ask(s, "alice", 1, amount=90).json == {"id": 1, "state": "draft"}
        assert ask(s, "bob", 1, amount=100, state="submitted").json == {"id": 1, "state": "submitted"}
        assert ask(s, "mallory", 1, state="approved").status_code == 404
        assert ask(s, "alice", 1, state="approved").json == {"id": 1, "state": "approved"}
        assert claim(example, s, 1) == ("approved", 100)


def legitimate_rejection(example: Example) -> None:
    """Alice rejects one of Bob's claims, the other waits on; a state that does not exist is refused."""
    with stage(example) as s:
        file_claims(example, s, "submitted")
        assert ask(s, "alice", DRAFT, state="rejected").status_code == 200
        assert ask(s, "alice", OTHER, state="paid").status_code in (403, 409, 422)
        assert claim(example, s, DRAFT) == ("rejected", 100)
        assert claim(example, s, OTHER) == ("submitted", 100)
