"""Globex is on the free plan, Acme has paid for business. How a payment changes the subscription is left out."""

from datetime import timedelta

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME, GLOBEX = 1, 2
FORECAST, EXPORT = "/forecast", "/export/forecast.csv"


def prepare(example: Example, s: Stage) -> None:
    with s.app.app_context():
        for organization_id, plan in ((ACME, "business"), (GLOBEX, "free")):
            until = example.now() + timedelta(days=30)
            db.session.add(example.Subscription(organization_id=organization_id, plan=plan, paid_until=until))
            db.session.add(example.Sale(organization_id=organization_id, amount=210 + organization_id))
        db.session.commit()


def change(example: Example, s: Stage, **values: object) -> None:
    """Change Acme's subscription."""
    with s.app.app_context():
        subscription = db.session.get(example.Subscription, ACME)
        for name, value in values.items():
            setattr(subscription, name, value)
        db.session.commit()


def observed(s: Stage, user: str, path: str, figure: str) -> Outcome:
    """Whether a user whose page does not offer the forecast gets the figure."""
    client = s.client(user)
    assert client.get("/features").json == ["sales"]
    answer = client.get(path)
    return outcome(
        gained=answer.status_code == 200 and figure in answer.text,
        refused=answer.status_code == 403 and figure not in answer.text,
        evidence=f"{answer.status_code} {answer.text}",
    )


def exploit_direct_call(example: Example) -> Outcome:
    """Mallory of Globex, which is on the free plan, calls the endpoint behind the button that her page hides."""
    with stage(example) as s:
        prepare(example, s)
        return observed(s, "mallory", FORECAST, "424")


def exploit_export(example: Example) -> Outcome:
    """Mallory finds the forecast in an export, which nobody thought of when the page was changed."""
    with stage(example) as s:
        prepare(example, s)
        return observed(s, "mallory", EXPORT, "424")


def exploit_downgraded(example: Example) -> Outcome:
    """Acme goes back to the free plan, and Bob's old client still gets the forecast."""
    with stage(example) as s:
        prepare(example, s)
        assert s.client("bob").get(FORECAST).status_code == 200
        change(example, s, plan="free")
        return observed(s, "bob", FORECAST, "422")


def exploit_unpaid(example: Example) -> Outcome:
    """Acme stops paying, its month is over, and Bob goes on exporting."""
    with stage(example) as s:
        prepare(example, s)
        change(example, s, paid_until=example.now() - timedelta(days=1))
        return observed(s, "bob", EXPORT, "422")


def legitimate_paid(example: Example) -> None:
    """Bob of Acme is offered the forecast, sees it and exports it."""
    with stage(example) as s:
        prepare(example, s)
        bob = s.client("bob")
        assert bob.get("/features").json == ["forecast", "sales"]
        assert bob.get(FORECAST).json == {"forecast": 422}
        assert bob.get(EXPORT).text == "forecast\n422\n"


def legitimate_upgrade(example: Example) -> None:
    """Acme pays again after a lapse, and Bob has the forecast back at once."""
    with stage(example) as s:
        prepare(example, s)
        change(example, s, paid_until=example.now() - timedelta(days=1))
        assert s.client("bob").get("/features").json == ["sales"]
        change(example, s, paid_until=example.now() + timedelta(days=30))
        assert s.client("bob").get(FORECAST).json == {"forecast": 422}
