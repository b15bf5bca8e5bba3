"""The stage signs requests in by a header; a client of the proof does what curl would do with Bob's session."""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

ACME, GLOBEX = 1, 2
ALICE = 1
FIRST, SECOND, FOREIGN = 1, 2, 3  # two invoices of Acme, one of Globex


def issue(example: Example, s: Stage) -> None:
    owners = {FIRST: ACME, SECOND: ACME, FOREIGN: GLOBEX}
    with s.app.app_context():
        for invoice_id, organization_id in owners.items():
            db.session.add(example.Invoice(id=invoice_id, state="open", organization_id=organization_id))
        db.session.commit()


def states(example: Example, s: Stage) -> list[str]:
    with s.app.app_context():
        return [invoice.state for invoice in db.session.scalars(db.select(example.Invoice).order_by("id"))]


def observed(example: Example, s: Stage, user: str, path: str) -> Outcome:
    """What came of a request that is to void Acme's second invoice."""
    answer = s.client(user).post(path)
    reached = states(example, s)
    return outcome(
        gained=reached == ["open", "void", "open"],
        refused=answer.status_code in (403, 404) and reached == ["open"] * 3,
        evidence=f"{answer.status_code} {reached}",
    )


def exploit_direct_request(example: Example) -> Outcome:
    """Bob, a member of Acme whose page has no button, sends the form's request with curl and voids Acme's invoice."""
    with stage(example) as s:
        issue(example, s)
        page = s.client("bob").get(f"/invoices/{SECOND}")
        assert page.status_code == 200 and "<button" not in page.text
        return observed(example, s, "bob", f"/invoices/{SECOND}/void")


def exploit_second_caller(example: Example) -> Outcome:
    """Bob asks the API, a second caller of the same function, which has no page that could hide a button."""
    with stage(example) as s:
        issue(example, s)
        return observed(example, s, "bob", f"/api/invoices/{SECOND}/void")


def exploit_foreign_admin(example: Example) -> Outcome:
    """Mallory, an administrator of Globex, has the API void an invoice of Acme, whose page answers her with 404."""
    with stage(example) as s:
        issue(example, s)
        assert s.client("mallory").get(f"/invoices/{SECOND}").status_code == 404
        return observed(example, s, "mallory", f"/api/invoices/{SECOND}/void")


def exploit_former_admin(example: Example) -> Outcome:
    """Alice has left Acme, keeps the role of an administrator in no organization, and still voids Acme's invoice."""
    with stage(example) as s:
        issue(example, s)
        with s.app.app_context():
            db.session.get(User, ALICE).organization_id = None
            db.session.commit()
        return observed(example, s, "alice", f"/invoices/{SECOND}/void")


def legitimate_admin(example: Example) -> None:
    """Alice, an administrator of Acme, voids one invoice by the button she is shown and the other through the API."""
    with stage(example) as s:
        issue(example, s)
        alice = s.client("alice")
        assert f'action="/invoices/{SECOND}/void"' in alice.get(f"/invoices/{SECOND}").text
        assert alice.post(f"/invoices/{SECOND}/void").status_code == 302
        assert states(example, s) == ["open", "void", "open"]
        assert alice.post(f"/api/invoices/{FIRST}/void").status_code == 204
        assert states(example, s) == ["void", "void", "open"]


def legitimate_reader(example: Example) -> None:
    """Bob reads Acme's invoice, without the button."""
    with stage(example) as s:
        issue(example, s)
        page = s.client("bob").get(f"/invoices/{FIRST}").text
        assert "is open" in page and "<button" not in page
