"""The rival runs to its end right after the statement that reads the invitation; no timing is left to luck.

The row lock of the second mitigation is not tried: SQLite has none.
"""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

ACME, GLOBEX = 1, 2
CAROL, DAVE = 4, 5  # they belong to nobody yet


def invite(example: Example, s: Stage) -> None:
    with s.app.app_context():
        db.session.add_all([User(id=CAROL, name="carol"), User(id=DAVE, name="dave")])
        db.session.add(example.Invitation(id=1, code="to-acme", organization_id=ACME))
        db.session.add(example.Invitation(id=2, code="to-globex", organization_id=GLOBEX))
        db.session.commit()


def joined(s: Stage, user_id: int) -> int | None:
    with s.app.app_context():
        found: int | None = db.session.get(User, user_id).organization_id
        return found


def state(example: Example, s: Stage, invitation_id: int = 1) -> str:
    with s.app.app_context():
        return str(db.session.get(example.Invitation, invitation_id).state)


def exploit_two_accepts(example: Example) -> Outcome:
    """Carol and Dave send the same invitation, meant for one, side by side; both pass the test and both join Acme."""
    with stage(example) as s:
        invite(example, s)
        with s.interrupted_after("FROM invitation", lambda: s.client("dave").post("/invitations/to-acme/accept")):
            answer = s.client("carol").post("/invitations/to-acme/accept")
        members = (joined(s, CAROL), joined(s, DAVE))
    return outcome(
        gained=members == (ACME, ACME),
        refused=answer.status_code == 409 and members == (None, ACME),
        evidence=f"{answer.status_code} {members}",
    )


def exploit_withdrawn(example: Example) -> Outcome:
    """Acme withdraws the invitation between the two steps; Carol joins all the same and it counts as accepted."""
    with stage(example) as s:
        invite(example, s)

        def withdraw() -> None:
            with s.app.app_context():
                db.session.get(example.Invitation, 1).state = "withdrawn"
                db.session.commit()

        with s.interrupted_after("FROM invitation", withdraw):
            answer = s.client("carol").post("/invitations/to-acme/accept")
        member, now = joined(s, CAROL), state(example, s)
    return outcome(
        gained=member == ACME,
        refused=answer.status_code == 409 and member is None and now == "withdrawn",
        evidence=f"{answer.status_code} {member} {now}",
    )


def legitimate_accept(example: Example) -> None:
    """Carol accepts the invitation to Acme; the one to Globex stays open."""
    with stage(example) as s:
        invite(example, s)
        assert s.client("carol").post("/invitations/to-acme/accept").status_code == 204
        assert joined(s, CAROL) == ACME
        assert (state(example, s), state(example, s, 2)) == ("accepted", "open")


def legitimate_late(example: Example) -> None:
    """Dave comes a day after Carol and is told that the invitation is taken; an unknown code is not found."""
    with stage(example) as s:
        invite(example, s)
        assert s.client("carol").post("/invitations/to-globex/accept").status_code == 204
        assert s.client("dave").post("/invitations/to-globex/accept").status_code == 409
        assert s.client("dave").post("/invitations/to-nobody/accept").status_code == 404
        assert joined(s, DAVE) is None
