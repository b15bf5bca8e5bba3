"""The cache is Flask-Caching's in memory; one with Redis behind it is given the same keys."""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

ACME, GLOBEX = 1, 2
ALICE, BOB, MALLORY = 1, 2, 3


def sell(example: Example, s: Stage) -> None:
    orders = [("A-1", 100, ALICE, ACME), ("A-2", 20, BOB, ACME), ("G-1", 3, MALLORY, GLOBEX)]
    with s.app.app_context():
        for number, amount, seller_id, organization_id in orders:
            order = example.Order(number=number, month="2026-11", amount=amount)
            order.seller_id, order.organization_id = seller_id, organization_id
            db.session.add(order)
        db.session.commit()


def exploit_other_tenant(example: Example) -> Outcome:
    """Mallory of Globex opens the dashboard after Alice and is served Acme's copy."""
    with stage(example) as s:
        sell(example, s)
        assert s.client("alice").get("/dashboard").json == ["A-1", "A-2"]
        numbers = s.client("mallory").get("/dashboard").json
    return outcome(gained="A-1" in numbers, refused=numbers == ["G-1"], evidence=numbers)


def exploit_administrators_copy(example: Example) -> Outcome:
    """Bob, who sells for Acme, opens the dashboard after its administrator and sees the orders of everybody."""
    with stage(example) as s:
        sell(example, s)
        assert s.client("alice").get("/dashboard").json == ["A-1", "A-2"]
        numbers = s.client("bob").get("/dashboard").json
    return outcome(gained="A-1" in numbers, refused=numbers == ["A-2"], evidence=numbers)


def exploit_same_argument(example: Example) -> Outcome:
    """Mallory asks for the revenue of the month that Alice asked for, and gets Acme's memoized sum."""
    with stage(example) as s:
        sell(example, s)
        assert s.client("alice").get("/revenue/2026-11").json == 120
        amount = s.client("mallory").get("/revenue/2026-11").json
    return outcome(gained=amount == 120, refused=amount == 3, evidence=str(amount))


def exploit_demoted(example: Example) -> Outcome:
    """Alice is no administrator any more; the copy made when she was one still answers her."""
    with stage(example) as s:
        sell(example, s)
        assert s.client("alice").get("/dashboard").json == ["A-1", "A-2"]
        with s.app.app_context():
            db.session.get(User, ALICE).role = "member"
            db.session.commit()
        numbers = s.client("alice").get("/dashboard").json
    return outcome(gained="A-2" in numbers, refused=numbers == ["A-1"], evidence=numbers)


def legitimate_hit(example: Example) -> None:
    """Alice's second request comes out of the cache, so that an order taken in between is not yet in it."""
    with stage(example) as s:
        sell(example, s)
        alice = s.client("alice")
        before = alice.get("/dashboard").json, alice.get("/revenue/2026-11").json
        assert before == (["A-1", "A-2"], 120)
        sell(example, s)
        assert (alice.get("/dashboard").json, alice.get("/revenue/2026-11").json) == before
        assert s.app.test_client().get("/dashboard").status_code == 401


def legitimate_seller(example: Example) -> None:
    """Bob, the first to ask, gets his own orders and his own sum."""
    with stage(example) as s:
        sell(example, s)
        assert s.client("bob").get("/dashboard").json == ["A-2"]
        assert s.client("bob").get("/revenue/2026-11").json == 20
