"""Messages are handed to the consumer as a broker's client would do it; the broker and its own rights are left out."""

import hmac
import json
from typing import Any

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

KEY = b"billing and licences know this"
ACME, GLOBEX = 1, 2  # the licence of each organization
ALICE, BOB, MALLORY = 1, 2, 3


def message(example: Example, license_id: int, actor_id: int, key: bytes = KEY) -> Any:
    event = {"id": "m-1", "license_id": license_id, "actor_id": actor_id, "role": "admin", "seats": 5}
    event["organization_id"] = license_id
    body = json.dumps(event).encode()
    return example.Message(body, hmac.digest(key, body, "sha256"))


def sell(example: Example, s: Stage) -> None:
    with s.app.app_context():
        for organization_id in (ACME, GLOBEX):
            db.session.add(example.License(id=organization_id, seats=10, organization_id=organization_id))
        db.session.commit()


def consumed(example: Example, s: Stage, delivered: Any) -> str:
    try:
        with s.app.app_context():
            example.seats_bought(delivered)
    except PermissionError:
        return "refused"
    return "applied"


def observed(example: Example, license_id: int, actor_id: int, key: bytes = KEY) -> Outcome:
    """What one message does to the licence."""
    with stage(example, BILLING_KEY=KEY) as s:
        sell(example, s)
        result = consumed(example, s, message(example, license_id, actor_id, key))
        seats = s.client("mallory" if license_id == GLOBEX else "alice").get(f"/licenses/{license_id}").json
    return outcome(
        gained=seats == 15,
        refused=result == "refused" and seats == 10,
        evidence=f"{result}: {seats} seats",
    )


def exploit_planted(example: Example) -> Outcome:
    """A service that may publish to the topic names Globex and its administrator, and Globex's licence grows."""
    return observed(example, GLOBEX, MALLORY, key=b"another service's key")


def exploit_other_tenant(example: Example) -> Outcome:
    """Alice, administrator of Acme, gets billing to send the id of Globex's licence, and it is changed for her."""
    return observed(example, GLOBEX, ALICE)


def exploit_claimed_role(example: Example) -> Outcome:
    """Bob, a member, asks billing with role admin in his request, which it copies into its message."""
    return observed(example, ACME, BOB)


def exploit_replay(example: Example) -> Outcome:
    """A message is read from the topic and published again, and the seats are added a second time."""
    with stage(example, BILLING_KEY=KEY) as s:
        sell(example, s)
        sent = message(example, ACME, ALICE)
        assert consumed(example, s, sent) == "applied"
        consumed(example, s, sent)
        seats = s.client("alice").get(f"/licenses/{ACME}").json
    return outcome(gained=seats == 20, refused=seats == 15, evidence=f"{seats} seats")


def legitimate_message(example: Example) -> None:
    """Billing's message that Alice bought five seats adds five to Acme's licence, and none to Globex's."""
    with stage(example, BILLING_KEY=KEY) as s:
        sell(example, s)
        assert consumed(example, s, message(example, ACME, ALICE)) == "applied"
        assert s.client("bob").get(f"/licenses/{ACME}").json == 15
        assert s.client("mallory").get(f"/licenses/{GLOBEX}").json == 10


def legitimate_other_buyer(example: Example) -> None:
    """Mallory, administrator of Globex, buys for Globex."""
    with stage(example, BILLING_KEY=KEY) as s:
        sell(example, s)
        assert consumed(example, s, message(example, GLOBEX, MALLORY)) == "applied"
        assert s.client("mallory").get(f"/licenses/{GLOBEX}").json == 15
