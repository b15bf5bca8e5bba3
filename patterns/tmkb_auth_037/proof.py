"""Sheets are sent as text; whether a contact could be edited alone is tried first, by the endpoint for one."""

from typing import Any

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME, GLOBEX = 1, 2
ALICE, BOB, MALLORY = 1, 2, 3
OWN, COLLEAGUES, FOREIGN = 2, 3, 1  # Globex's is the oldest, and shares its external id with Bob's


def enter(example: Example, s: Stage) -> None:
    contacts = [(FOREIGN, GLOBEX, MALLORY, "C-100"), (OWN, ACME, BOB, "C-100"), (COLLEAGUES, ACME, ALICE, "C-200")]
    with s.app.app_context():
        for number, organization_id, owner_id, external_id in contacts:
            contact = example.Contact(id=number, organization_id=organization_id, owner_id=owner_id)
            contact.external_id, contact.email = external_id, "old@example.org"
            db.session.add(contact)
            db.session.flush()
        db.session.add(example.Contact(id=4, organization_id=GLOBEX, owner_id=MALLORY, external_id="C-300"))
        db.session.commit()


def send(s: Stage, user: str, sheet: str) -> int:
    return s.client(user).post("/contacts/import", data=sheet, content_type="text/csv").status_code


def rows(example: Example, s: Stage) -> list[tuple[Any, ...]]:
    """organization, external id, e-mail, credit limit of each contact, in the order of their ids."""
    with s.app.app_context():
        contacts = db.session.scalars(db.select(example.Contact).order_by(example.Contact.id))
        return [(c.organization_id, c.external_id, c.email, c.credit_limit) for c in contacts]


OLD = [
    (GLOBEX, "C-100", "old@example.org", 0),
    (ACME, "C-100", "old@example.org", 0),
    (ACME, "C-200", "old@example.org", 0),
    (GLOBEX, "C-300", None, 0),
]


def exploit_foreign_contact(example: Example) -> Outcome:
    """Bob of Acme imports a row with an external id that only Globex uses, and Globex then mails to his address."""
    with stage(example) as s:
        enter(example, s)
        status = send(s, "bob", "external_id,name,email\nC-300,Dora,bob@example.org\n")
        after = rows(example, s)
    return outcome(
        gained=after[3] == (GLOBEX, "C-300", "bob@example.org", 0),
        refused=status == 204 and after == [*OLD, (ACME, "C-300", "bob@example.org", 0)],
        evidence=(status, after),
    )


def exploit_colleagues_contact(example: Example) -> Outcome:
    """Bob puts a contact of Alice, which he cannot edit alone, into his sheet."""
    with stage(example) as s:
        enter(example, s)
        body = {"name": "Carol", "email": "bob@example.org"}
        assert s.client("bob").patch(f"/contacts/{COLLEAGUES}", json=body).status_code == 403
        status = send(s, "bob", "external_id,name,email\nC-200,Carol,bob@example.org\n")
        after = rows(example, s)
    return outcome(
        gained=after[2][2] == "bob@example.org", refused=status == 403 and after == OLD, evidence=(status, after)
    )


def exploit_extra_column(example: Example) -> Outcome:
    """Bob adds columns that no screen offers: a credit limit for one row, and Globex as the home of another."""
    with stage(example) as s:
        enter(example, s)
        columns = "external_id,name,email,credit_limit,organization_id"
        status = send(s, "bob", f"{columns}\nC-400,Eve,eve@example.org,9000,{GLOBEX}\n")
        new = rows(example, s)[4:]
    return outcome(
        gained=new == [(GLOBEX, "C-400", "eve@example.org", 9000)],
        refused=status == 204 and new == [(ACME, "C-400", "eve@example.org", 0)],
        evidence=(status, new),
    )


def legitimate_first_import(example: Example) -> None:
    """Bob imports new contacts, and the same sheet once more changes nothing."""
    with stage(example) as s:
        enter(example, s)
        for _ in range(2):
            assert send(s, "bob", "external_id,name,email\nC-500,Eve,eve@example.org\n") == 204
            assert rows(example, s) == [*OLD, (ACME, "C-500", "eve@example.org", 0)]


def legitimate_update(example: Example) -> None:
    """Alice, the administrator, updates her contact by a sheet with a new address, and the others stay."""
    with stage(example) as s:
        enter(example, s)
        assert send(s, "alice", "external_id,name,email\nC-200,Carol,new@example.org\n") == 204
        assert rows(example, s) == [*OLD[:2], (ACME, "C-200", "new@example.org", 0), OLD[3]]
