"""Mallory of Globex and then Alice of Acme create an invoice; on an empty table the numbers are 1 and 2."""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

ACMES_TOTAL, GLOBEX_TOTAL = 4200, 7
NEXT = "/invoices/2"  # what comes after Mallory's own
BOB = 2


def create(s: Stage, user: str, total: int) -> str:
    """The address of a new invoice."""
    answer = s.client(user).post("/invoices", json={"total": total})
    assert answer.status_code == 201
    return str(answer.get_json()["url"])


def fill(s: Stage) -> str:
    """The address of Acme's invoice, which has number 2."""
    create(s, "mallory", GLOBEX_TOTAL)
    return create(s, "alice", ACMES_TOTAL)


def state(example: Example, s: Stage) -> str:
    """The state of Acme's invoice."""
    with s.app.app_context():
        return str(db.session.scalars(db.select(example.Invoice).filter_by(total=ACMES_TOTAL)).one().state)


def opened(s: Stage, user: str, url: str) -> Outcome:
    """What ``user`` gets to see of Acme's invoice."""
    answer = s.client(user).get(url)
    return outcome(
        gained=answer.status_code == 200 and answer.get_json()["total"] == ACMES_TOTAL,
        refused=answer.status_code == 404 and str(ACMES_TOTAL) not in answer.text,
        evidence=f"{answer.status_code} {answer.text}",
    )


def exploit_counting(example: Example) -> Outcome:
    """Mallory of Globex sees that her invoice has number 1, opens number 2, and reads what Acme is charged."""
    with stage(example) as s:
        fill(s)
        return opened(s, "mallory", NEXT)


def exploit_cancel(example: Example) -> Outcome:
    """Mallory cancels the invoice with number 2, which is Acme's."""
    with stage(example) as s:
        fill(s)
        code = s.client("mallory").post(f"{NEXT}/cancel").status_code
        reached = state(example, s)
    return outcome(
        gained=code == 204 and reached == "cancelled",
        refused=code == 404 and reached == "open",
        evidence=f"{code} {reached}",
    )


def exploit_forwarded_address(example: Example) -> Outcome:
    """Mallory finds the address of Acme's invoice in a mail that was forwarded to her, and opens it."""
    with stage(example) as s:
        return opened(s, "mallory", fill(s))


def exploit_former_member(example: Example) -> Outcome:
    """Bob has left Acme, belongs to no organization, and opens Acme's invoice from the history of his browser."""
    with stage(example) as s:
        url = fill(s)
        with s.app.app_context():
            db.session.get(User, BOB).organization_id = None
            db.session.commit()
        return opened(s, "bob", url)


def legitimate_own_invoice(example: Example) -> None:
    """Bob opens and cancels Acme's invoice, Mallory opens hers, and an address that does not exist answers 404."""
    with stage(example) as s:
        url = fill(s)
        assert s.client("bob").get(url).json == {"total": ACMES_TOTAL, "state": "open"}
        assert s.client("bob").post(f"{url}/cancel").status_code == 204
        assert state(example, s) == "cancelled"
        hers = create(s, "mallory", GLOBEX_TOTAL)
        assert s.client("mallory").get(hers).json == {"total": GLOBEX_TOTAL, "state": "open"}
        assert s.client("mallory").get("/invoices/99").status_code == 404
