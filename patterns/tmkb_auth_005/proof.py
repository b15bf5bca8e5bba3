"""Alice is administrator and Bob member of Acme; each of the two has written one timesheet there."""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

ALICES, BOBS = 1, 2  # timesheets
ACME, GLOBEX = 1, 2
BOB = 2


def fill(example: Example, s: Stage) -> None:
    with s.app.app_context():
        for number, creator in ((ALICES, 1), (BOBS, BOB)):
            db.session.add(example.Timesheet(id=number, hours=40, created_by=creator, organization_id=ACME))
        db.session.commit()


def move_bob(s: Stage, organization_id: int | None) -> None:
    with s.app.app_context():
        db.session.get(User, BOB).organization_id = organization_id
        db.session.commit()


def hours(example: Example, s: Stage, number: int) -> int | None:
    """The hours on a timesheet; None when it is gone."""
    with s.app.app_context():
        sheet = db.session.get(example.Timesheet, number)
        return None if sheet is None else int(sheet.hours)


def edit(s: Stage, user: str, number: int, value: int) -> int:
    return s.client(user).patch(f"/timesheets/{number}", json={"hours": value}).status_code


def delete(s: Stage, user: str, number: int) -> int:
    return s.client(user).delete(f"/timesheets/{number}").status_code


def observed(example: Example, s: Stage, code: int, number: int, gained: int | None) -> Outcome:
    """What a request answered with ``code`` did to a timesheet of 40 hours."""
    now = hours(example, s, number)
    return outcome(
        gained=code == 204 and now == gained,
        refused=code in (403, 404) and now == 40,
        evidence=f"{code}, {now} hours",
    )


def exploit_colleague(example: Example) -> Outcome:
    """Bob deletes the timesheet of Alice, his colleague, because being a member of Acme is all that is asked."""
    with stage(example) as s:
        fill(example, s)
        return observed(example, s, delete(s, "bob", ALICES), ALICES, None)


def exploit_former_member(example: Example) -> Outcome:
    """Bob is removed from Acme and still raises the hours on his old timesheet, because he once created it."""
    with stage(example) as s:
        fill(example, s)
        move_bob(s, None)
        return observed(example, s, edit(s, "bob", BOBS, 60), BOBS, 60)


def exploit_moved_on(example: Example) -> Outcome:
    """Bob joins Globex instead and goes on editing what he left behind in Acme."""
    with stage(example) as s:
        fill(example, s)
        move_bob(s, GLOBEX)
        return observed(example, s, edit(s, "bob", BOBS, 60), BOBS, 60)


def legitimate_creator(example: Example) -> None:
    """Bob, who is still a member, edits his timesheet and deletes it; Alice's he cannot edit."""
    with stage(example) as s:
        fill(example, s)
        assert edit(s, "bob", BOBS, 38) == 204
        assert hours(example, s, BOBS) == 38
        assert edit(s, "bob", ALICES, 38) in (403, 404)
        assert delete(s, "bob", BOBS) == 204
        assert hours(example, s, BOBS) is None


def legitimate_administrator(example: Example) -> None:
    """Alice deletes Bob's timesheet, as Acme's administrator, and cannot rewrite it; Globex's can do neither."""
    with stage(example) as s:
        fill(example, s)
        for user in ("alice", "mallory"):
            assert edit(s, user, BOBS, 60) in (403, 404)
        assert delete(s, "mallory", BOBS) in (403, 404)
        assert hours(example, s, BOBS) == 40
        assert delete(s, "alice", BOBS) == 204
        assert hours(example, s, BOBS) is None
