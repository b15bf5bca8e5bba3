"""The outbox stands for the mail server. Celery beat is not started: what it does is to put the task on the queue."""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

ACME, BOB = 1, 2


def subscribe(example: Example, s: Stage) -> None:
    with s.app.app_context():
        db.session.add(example.Report(id=1, owner_id=BOB, organization_id=ACME, email="bob@mail.example"))
        db.session.commit()


def monday(example: Example, s: Stage) -> None:
    with s.app.app_context():
        example.send_weekly_reports.delay()
    assert s.results() == [None]


def mailed(example: Example) -> str:
    return " ".join(line for _, lines in example.outbox for line in lines)


def paused(example: Example, s: Stage) -> bool:
    with s.app.app_context():
        return bool(db.session.get(example.Report, 1).paused)


def observed(example: Example, s: Stage) -> Outcome:
    """What a report of somebody who may no longer have it brought on Monday."""
    monday(example, s)
    return outcome(
        gained="Acme payroll" in mailed(example),
        refused=not example.outbox and paused(example, s),
        evidence=repr(example.outbox),
    )


def exploit_former_member(example: Example) -> Outcome:
    """Bob leaves Acme; on Monday his report still brings him Acme's documents."""
    with stage(example) as s:
        subscribe(example, s)
        with s.app.app_context():
            db.session.get(User, BOB).organization_id = None
            db.session.commit()
        return observed(example, s)


def exploit_deleted_owner(example: Example) -> Outcome:
    """Bob's account is deleted; the address in his schedule goes on receiving Acme's documents."""
    with stage(example) as s:
        subscribe(example, s)
        with s.app.app_context():
            db.session.delete(db.session.get(User, BOB))
            db.session.commit()
        return observed(example, s)


def exploit_other_tenant(example: Example) -> Outcome:
    """Bob, a member of Acme in good standing, reads in his own report what Globex plans."""
    with stage(example) as s:
        subscribe(example, s)
        monday(example, s)
        return outcome(
            gained="Globex plan" in mailed(example),
            refused=mailed(example) == "Acme payroll",
            evidence=repr(example.outbox),
        )


def legitimate_report(example: Example) -> None:
    """Bob's report arrives, at his address, with Acme's document in it, and again the week after."""
    with stage(example) as s:
        subscribe(example, s)
        monday(example, s)
        monday(example, s)
        assert [to for to, _ in example.outbox] == ["bob@mail.example"] * 2
        assert all("Acme payroll" in lines for _, lines in example.outbox)
        assert not paused(example, s)
