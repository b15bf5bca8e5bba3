"""What a body changed is read from the database; an answer could hide it."""

from collections.abc import Mapping

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Document, Stage, User, db, stage

ACME, GLOBEX = 1, 2
ALICE, BOB = 1, 2
PAYROLL = 1  # Alice's document


def facts(s: Stage) -> dict[str, object]:
    """Everything about Bob and the document that the system decides."""
    with s.app.app_context():
        bob, payroll = db.session.get(User, BOB), db.session.get(Document, PAYROLL)
        return {
            "role": bob.role,
            "tenant": bob.organization_id,
            "owner": payroll.owner_id,
            "document's tenant": payroll.organization_id,
        }


def attack(example: Example, path: str, body: Mapping[str, object], change: dict[str, object]) -> Outcome:
    """Bob sends ``body``, hoping for ``change``. To refuse may mean 422, or to leave out what is not his to set."""
    with stage(example) as s:
        before = facts(s)
        answer = s.client("bob").patch(path, json=body)
        after = facts(s)
    return outcome(
        gained=answer.status_code == 204 and after == before | change,
        refused=answer.status_code in (204, 422) and after == before,
        evidence=f"{answer.status_code}, {after}",
    )


def exploit_role(example: Example) -> Outcome:
    """Bob, a member, adds a role to the change of his name and is an administrator."""
    return attack(example, "/me", {"name": "Robert", "role": "admin"}, {"role": "admin"})


def exploit_tenant(example: Example) -> Outcome:
    """Bob of Acme puts Globex's number into his profile and finds himself a member there."""
    return attack(example, "/me", {"organization_id": GLOBEX}, {"tenant": GLOBEX})


def exploit_owner(example: Example) -> Outcome:
    """Bob, who may rename Alice's document, makes himself its owner with the same request."""
    return attack(example, f"/documents/{PAYROLL}", {"title": "Pay", "owner_id": BOB}, {"owner": BOB})


def exploit_moved_document(example: Example) -> Outcome:
    """Bob moves Acme's payroll over to Globex, where Mallory can read it."""
    path, body = f"/documents/{PAYROLL}", {"organization_id": GLOBEX}
    return attack(example, path, body, {"document's tenant": GLOBEX})


def legitimate_changes(example: Example) -> None:
    """Bob renames Acme's document and himself, may send an empty change, and does not reach Globex's document."""
    with stage(example) as s:
        bob = s.client("bob")
        assert bob.patch(f"/documents/{PAYROLL}", json={"title": "Pay"}).status_code == 204
        assert bob.patch(f"/documents/{PAYROLL}", json={}).status_code == 204
        assert bob.patch("/documents/2", json={"title": "Pay"}).status_code == 404
        assert bob.patch("/me", json={}).status_code == 204
        assert bob.patch("/me", json={"name": "Robert"}).status_code == 204
        with s.app.app_context():
            assert db.session.get(Document, PAYROLL).title == "Pay"
            assert db.session.get(User, BOB).name == "Robert"
