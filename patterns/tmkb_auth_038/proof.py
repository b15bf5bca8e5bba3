"""Events are signed with the secret of one organization's connection, as a payment provider does for each connected
account. Nothing is claimed about a provider's own format, or about replays, which are a matter of authentication."""

import hashlib
import hmac
import json
from typing import Any

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME, GLOBEX = 1, 2  # organizations, and their connections
SHARED = "carol@customers.example"


def open_shops(example: Example, s: Stage) -> None:
    with s.app.app_context():
        for organization_id, email in [(GLOBEX, SHARED), (ACME, SHARED)]:
            db.session.add_all(
                [
                    example.Connection(
                        id=organization_id, organization_id=organization_id, secret=f"s{organization_id}"
                    ),
                    example.Shop(organization_id=organization_id),
                    example.Order(id=10 * organization_id, organization_id=organization_id),
                    example.Customer(organization_id=organization_id, email=email),
                ]
            )
            db.session.flush()
        db.session.add(example.Customer(organization_id=GLOBEX, email="dora@customers.example"))
        db.session.commit()


def send(s: Stage, connection: int, secret: str, **event: Any) -> int:
    body = json.dumps(event).encode()
    headers = {"X-Signature": hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}
    client = s.app.test_client()
    path = f"/hooks/payments/{connection}"
    return client.post(path, data=body, headers=headers, content_type="application/json").status_code


def touched(example: Example, s: Stage) -> list[tuple[str, int]]:
    """What has changed, and whose it is."""
    with s.app.app_context():
        rows = [
            *db.session.scalars(db.select(example.Shop).filter_by(open=False)),
            *db.session.scalars(db.select(example.Order).filter_by(paid=True)),
            *db.session.scalars(db.select(example.Customer).filter_by(blocked=True)),
        ]
        return [(type(row).__name__, row.organization_id) for row in rows]


def observed(example: Example, designed: list[Any], **event: Any) -> Outcome:
    """What an event of Acme's connection has done; ``designed`` are status and changes where it is confined to Acme."""
    with stage(example) as s:
        open_shops(example, s)
        status = send(s, ACME, "s1", **event)
        changes = touched(example, s)
    return outcome(
        gained=any(organization_id == GLOBEX for _, organization_id in changes),
        refused=[status, changes] == designed,
        evidence=(status, changes),
    )


def exploit_named_organization(example: Example) -> Outcome:
    """Alice of Acme writes Globex's number into the metadata of her payment account, and Globex's shop is closed."""
    return observed(example, [204, [("Shop", ACME)]], type="account.restricted", metadata={"organization_id": GLOBEX})


def exploit_foreign_order(example: Example) -> Outcome:
    """She pays one cent into her own account with the number of her order at Globex, which then counts as paid."""
    return observed(
        example, [404, []], type="payment.succeeded", metadata={"organization_id": ACME, "order_id": 10 * GLOBEX}
    )


def exploit_foreign_customer(example: Example) -> Outcome:
    """She reports a dispute with somebody who buys at Globex only, and Globex blocks that customer."""
    event = {"type": "customer.disputed", "metadata": {"organization_id": ACME}, "email": "dora@customers.example"}
    return observed(example, [404, []], **event)


def exploit_shared_customer(example: Example) -> Outcome:
    """She disputes a payment of someone who is a customer of both, and it is Globex's record that is found."""
    event = {"type": "customer.disputed", "metadata": {"organization_id": ACME}, "email": SHARED}
    return observed(example, [204, [("Customer", ACME)]], **event)


def legitimate_own_events(example: Example) -> None:
    """Acme's events close Acme's shop and mark Acme's order as paid."""
    with stage(example) as s:
        open_shops(example, s)
        own = {"organization_id": ACME, "order_id": 10 * ACME}
        assert send(s, ACME, "s1", type="payment.succeeded", metadata=own) == 204
        assert touched(example, s) == [("Order", ACME)]
        assert send(s, ACME, "s1", type="account.restricted", metadata=own) == 204
        assert touched(example, s) == [("Shop", ACME), ("Order", ACME)]


def legitimate_sender(example: Example) -> None:
    """Globex's events apply to Globex; with the secret of another connection they are not taken at all."""
    with stage(example) as s:
        open_shops(example, s)
        event = {"type": "customer.disputed", "metadata": {"organization_id": GLOBEX}, "email": SHARED}
        assert send(s, GLOBEX, "s1", **event) == 401
        assert send(s, GLOBEX, "s2", **event) == 204
        assert touched(example, s) == [("Customer", GLOBEX)]
