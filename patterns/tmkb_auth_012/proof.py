"""Whole batches are sent; whether a ticket could be deleted alone is tried first, by the endpoint for one."""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME, GLOBEX = 1, 2
ALICE, BOB, MALLORY = 1, 2, 3
OWN, SECOND, COLLEAGUES, FOREIGN, FORMER = ALL = [1, 2, 3, 4, 5]


def write(example: Example, s: Stage) -> None:
    authors = [(BOB, ACME), (BOB, ACME), (ALICE, ACME), (MALLORY, GLOBEX), (BOB, GLOBEX)]
    with s.app.app_context():
        for ticket_id, (author_id, organization_id) in zip(ALL, authors, strict=True):
            db.session.add(example.Ticket(id=ticket_id, author_id=author_id, organization_id=organization_id))
        db.session.commit()


def left(example: Example, s: Stage) -> list[int]:
    with s.app.app_context():
        return list(db.session.scalars(db.select(example.Ticket.id).order_by(example.Ticket.id)))


def observed(example: Example, ids: list[int], victim: int) -> Outcome:
    """What came of Bob's batch ``ids``, among them ``victim``, which he cannot delete alone."""
    with stage(example) as s:
        write(example, s)
        bob = s.client("bob")
        assert bob.delete(f"/tickets/{victim}").status_code == 404
        answer = bob.post("/tickets/delete", json={"ids": ids})
        rest = left(example, s)
    return outcome(
        gained=victim not in rest,
        refused=answer.status_code == 404 and rest == ALL,
        evidence=f"{answer.status_code} {rest}",
    )


def exploit_foreign_ticket(example: Example) -> Outcome:
    """Bob, a member of Acme, deletes a batch that begins with two tickets of his own and ends with one of Globex."""
    return observed(example, [OWN, SECOND, FOREIGN], FOREIGN)


def exploit_colleagues_ticket(example: Example) -> Outcome:
    """Bob slips in a ticket of Alice, which belongs to Acme too but which only she may delete."""
    return observed(example, [OWN, COLLEAGUES], COLLEAGUES)


def exploit_former_organization(example: Example) -> Outcome:
    """Bob, who came from Globex to Acme, adds a ticket that he wrote at Globex and that has stayed there."""
    return observed(example, [OWN, FORMER], FORMER)


def legitimate_batch(example: Example) -> None:
    """Bob deletes a ticket of his own, named twice by his browser, and it alone goes."""
    with stage(example) as s:
        write(example, s)
        assert s.client("bob").post("/tickets/delete", json={"ids": [SECOND, SECOND]}).status_code == 204
        assert left(example, s) == [OWN, COLLEAGUES, FOREIGN, FORMER]


def legitimate_author(example: Example) -> None:
    """Bob deletes both of his tickets in one batch, and Alice hers alone."""
    with stage(example) as s:
        write(example, s)
        assert s.client("bob").post("/tickets/delete", json={"ids": [SECOND, OWN]}).status_code == 204
        assert s.client("alice").delete(f"/tickets/{COLLEAGUES}").status_code == 204
        assert left(example, s) == [FOREIGN, FORMER]
