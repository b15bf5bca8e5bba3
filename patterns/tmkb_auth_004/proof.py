"""Invoices are put straight into the tables and looked up there in plain SQL, which no session event touches."""

from typing import Any

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

ACME, GLOBEX = 1, 2
BOB = 2


def bill(example: Example, s: Stage, number: str, organization_id: int, **values: Any) -> None:
    with s.app.app_context():
        db.session.add(example.Invoice(number=number, amount=100, organization_id=organization_id, **values))
        db.session.commit()


def reminded(s: Stage) -> list[str]:
    with s.app.app_context():
        return list(db.session.scalars(db.text("SELECT number FROM invoice WHERE reminded ORDER BY number")))


def exploit_forgotten_condition(example: Example) -> Outcome:
    """Bob of Acme asks for unpaid invoices, a view that forgets the organization, and reads those of Globex too."""
    with stage(example) as s:
        bill(example, s, "A-1", ACME)
        bill(example, s, "G-1", GLOBEX)
        answer = s.client("bob").get("/invoices/unpaid")
    return outcome(
        gained="G-1" in answer.text,
        refused="G-1" not in answer.text and (answer.status_code == 403 or answer.json == ["A-1"]),
        evidence=answer.text,
    )


def exploit_sum(example: Example) -> Outcome:
    """Bob asks what is outstanding and, subtracting his own, learns what Globex is owed."""
    with stage(example) as s:
        bill(example, s, "A-1", ACME)
        bill(example, s, "G-1", GLOBEX)
        answer = s.client("bob").get("/invoices/outstanding")
    return outcome(gained=answer.json == 200, refused=answer.json == 100, evidence=answer.text)


def exploit_bulk_update(example: Example) -> Outcome:
    """Bob sends Acme's reminders and with them those of every other organization."""
    with stage(example) as s:
        bill(example, s, "A-1", ACME)
        bill(example, s, "G-1", GLOBEX)
        answer = s.client("bob").post("/invoices/remind")
        sent = reminded(s)
    return outcome(
        gained=sent == ["A-1", "G-1"],
        refused=answer.status_code == 204 and sent == ["A-1"],
        evidence=sent,
    )


def exploit_no_tenant(example: Example) -> Outcome:
    """Bob has left Acme and belongs to no organization; the same view still shows him everybody's invoices."""
    with stage(example) as s:
        bill(example, s, "A-1", ACME)
        bill(example, s, "G-1", GLOBEX)
        with s.app.app_context():
            db.session.get(User, BOB).organization_id = None
            db.session.commit()
        answer = s.client("bob").get("/invoices/unpaid")
    return outcome(
        gained="A-1" in answer.text and "G-1" in answer.text,
        refused=answer.status_code == 403 or answer.json == [],
        evidence=answer.text,
    )


def legitimate_views(example: Example) -> None:
    """Each organization lists its invoices, whoever asked before."""
    with stage(example) as s:
        bill(example, s, "A-1", ACME, paid=True)
        bill(example, s, "G-1", GLOBEX)
        for _ in range(2):
            assert s.client("bob").get("/invoices").json == ["A-1"]
            assert s.client("mallory").get("/invoices").json == ["G-1"]
        assert s.client("nobody").get("/invoices").status_code == 401


def legitimate_reminders(example: Example) -> None:
    """Bob sees what is unpaid and outstanding and sends a reminder; what is paid stays out of it."""
    with stage(example) as s:
        bill(example, s, "A-1", ACME)
        bill(example, s, "A-2", ACME, paid=True)
        assert s.client("bob").get("/invoices/unpaid").json == ["A-1"]
        assert s.client("bob").get("/invoices/outstanding").json == 100
        assert s.client("bob").post("/invoices/remind").status_code == 204
        assert reminded(s) == ["A-1"]
