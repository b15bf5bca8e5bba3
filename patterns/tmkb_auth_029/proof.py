"""Gateway and billing service run in one process; the call between them is a request of its own.

The gateway's key is shared here, so a service that verifies could also sign; in production it is a key pair. Which
network may reach the service, and how services prove who they are to each other, is not claimed.
"""

from datetime import UTC, datetime, timedelta

import jwt

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

KEY = "0123456789abcdef0123456789abcdef"
ALICE, BOB = 1, 2
ALICES, BOBS = 1, 2  # invoices


def bill(example: Example, s: Stage) -> None:
    with s.app.app_context():
        db.session.add(example.Invoice(id=ALICES, payer_id=ALICE, amount=900))
        db.session.add(example.Invoice(id=BOBS, payer_id=BOB, amount=20))
        db.session.commit()


def assertion(key: str = KEY, audience: str | None = "billing", minutes: int | None = 1) -> str:
    """What somebody puts forward to be taken for Alice."""
    claims: dict[str, object] = {"sub": str(ALICE)}
    if audience is not None:
        claims["aud"] = audience
    if minutes is not None:
        claims["exp"] = datetime.now(UTC) + timedelta(minutes=minutes)
    return "Bearer " + jwt.encode(claims, key, "HS256")


def straight(example: Example, authorization: str | None = None) -> Outcome:
    """What a request straight to the service gets of Alice's invoice, when its header names her."""
    headers = {"X-User-Id": str(ALICE)} | ({"Authorization": authorization} if authorization else {})
    with stage(example, GATEWAY_KEY=KEY) as s:
        bill(example, s)
        answer = s.app.test_client().get(f"/billing/invoices/{ALICES}", headers=headers)
    return outcome(
        gained=answer.json == {"amount": 900},
        refused=answer.status_code == 401 and b"900" not in answer.data,
        evidence=f"{answer.status_code} {answer.json}",
    )


def exploit_header(example: Example) -> Outcome:
    """Somebody on the internal network asks the billing service itself and writes Alice's id into the header."""
    return straight(example)


def exploit_header_through_gateway(example: Example) -> Outcome:
    """Bob, signed in, sends the header along to the gateway, which hands it on as if it were its own."""
    with stage(example, GATEWAY_KEY=KEY) as s:
        bill(example, s)
        answer = s.client("bob").get(f"/api/invoices/{ALICES}", headers={"X-User-Id": str(ALICE)})
    return outcome(
        gained=answer.json == {"amount": 900},
        refused=answer.status_code == 404 and b"900" not in answer.data,
        evidence=f"{answer.status_code} {answer.json}",
    )


def exploit_other_audience(example: Example) -> Outcome:
    """The reporting service, which got an assertion about Alice for itself, uses it at the billing service."""
    return straight(example, assertion(audience="reporting"))


def exploit_old_assertion(example: Example) -> Outcome:
    """An assertion about Alice is found in a log of yesterday and sent again."""
    return straight(example, assertion(minutes=-1440))


def exploit_endless_assertion(example: Example) -> Outcome:
    """An assertion about Alice that names no end at all is put forward."""
    return straight(example, assertion(minutes=None))


def exploit_forged_assertion(example: Example) -> Outcome:
    """A service without the gateway's key signs an assertion about Alice with a key of its own."""
    return straight(example, assertion(key=KEY[::-1]))


def legitimate_gateway(example: Example) -> None:
    """Bob sees his invoice through the gateway, Alice hers, and neither the other's."""
    with stage(example, GATEWAY_KEY=KEY) as s:
        bill(example, s)
        assert s.client("bob").get(f"/api/invoices/{BOBS}").json == {"amount": 20}
        assert s.client("alice").get(f"/api/invoices/{ALICES}").json == {"amount": 900}
        assert s.client("bob").get(f"/api/invoices/{ALICES}").status_code == 404


def legitimate_nobody(example: Example) -> None:
    """Bob is served, and who is not signed in gets 401 from the gateway and from the service."""
    with stage(example, GATEWAY_KEY=KEY) as s:
        bill(example, s)
        assert s.client("bob").get(f"/api/invoices/{BOBS}").status_code == 200
        assert s.app.test_client().get(f"/api/invoices/{BOBS}").status_code == 401
        assert s.app.test_client().get(f"/billing/invoices/{BOBS}").status_code == 401
