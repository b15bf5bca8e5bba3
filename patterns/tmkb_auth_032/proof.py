"""Alice is Acme's administrator, Bob a member there; Mallory is Globex's administrator, Dave a member there.

Where the code under proof has no way to accept, the attempt to accept is answered with 404 and changes nothing.
"""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Organization, Stage, User, db, stage

ACME, GLOBEX, INITECH = 1, 2, 3
BOB, CAROL, DAVE = 2, 4, 5
MOON, MARS = 1, 2  # projects of Acme


def prepare(example: Example, s: Stage) -> None:
    """Bob and Carol, a freelancer, work on one project of Acme, and a link to it is out; the other is Acme's own."""
    with s.app.app_context():
        db.session.add(Organization(id=INITECH, name="Initech"))
        db.session.add(User(id=CAROL, name="carol"))
        db.session.add(User(id=DAVE, name="dave", organization_id=GLOBEX))
        for number, name in ((MOON, "moon"), (MARS, "mars")):
            db.session.add(example.Project(id=number, name=name, organization_id=ACME))
        db.session.add_all([example.Collaborator(project_id=MOON, user_id=user_id) for user_id in (BOB, CAROL)])
        db.session.add(example.ShareLink(token="link", project_id=MOON))
        db.session.add(example.Collaborator(project_id=MARS, user_id=CAROL))
        db.session.commit()


def transfer(s: Stage, user: str, organization_id: int = GLOBEX) -> int:
    answer = s.client(user).post(f"/projects/{MOON}/transfer", json={"organization_id": organization_id})
    return answer.status_code


def accept(s: Stage, user: str, project_id: int = MOON) -> int:
    return s.client(user).post(f"/projects/{project_id}/transfer/accept").status_code


def holder(example: Example, s: Stage, project_id: int = MOON) -> int:
    """The organization that has the project."""
    with s.app.app_context():
        return int(db.session.get(example.Project, project_id).organization_id)


def handed_over(example: Example, s: Stage) -> None:
    """Acme hands the project to Globex, and Globex agrees."""
    transfer(s, "alice")
    accept(s, "mallory")
    assert holder(example, s) == GLOBEX


def exploit_former_colleague(example: Example) -> Outcome:
    """The project has gone from Acme to Globex, and Bob of Acme, once a collaborator, still reads it."""
    with stage(example) as s:
        prepare(example, s)
        handed_over(example, s)
        answer = s.client("bob").get(f"/projects/{MOON}")
    return outcome(
        gained=answer.json == {"name": "moon"}, refused=answer.status_code == 404, evidence=answer.status_code
    )


def exploit_old_link(example: Example) -> Outcome:
    """A link that Acme once sent round opens the project, which is Globex's by now."""
    with stage(example) as s:
        prepare(example, s)
        handed_over(example, s)
        answer = s.app.test_client().get("/shared/link")
    return outcome(
        gained=answer.json == {"name": "moon"}, refused=answer.status_code == 404, evidence=answer.status_code
    )


def exploit_pushed(example: Example) -> Outcome:
    """Alice pushes a project to Globex, where nobody has agreed to answer for what is in it."""
    with stage(example) as s:
        prepare(example, s)
        code = transfer(s, "alice")
        now = holder(example, s)
    return outcome(gained=now == GLOBEX, refused=code == 202 and now == ACME, evidence=f"{code} {now}")


def exploit_member_gives_away(example: Example) -> Outcome:
    """Bob, a plain member, gives Acme's project to Globex, where his friend Mallory takes it."""
    with stage(example) as s:
        prepare(example, s)
        code = transfer(s, "bob")
        accept(s, "mallory")
        now = holder(example, s)
    return outcome(gained=now == GLOBEX, refused=code == 403 and now == ACME, evidence=f"{code} {now}")


def exploit_member_accepts(example: Example) -> Outcome:
    """Globex gets Acme's project with the help of Dave, a plain member, and without its administrator."""
    with stage(example) as s:
        prepare(example, s)
        transfer(s, "alice")
        code = accept(s, "dave")
        now = holder(example, s)
    return outcome(gained=now == GLOBEX, refused=code == 403 and now == ACME, evidence=f"{code} {now}")


def legitimate_transfer(example: Example) -> None:
    """The project goes to Globex; Mallory and Dave read it, Alice no longer; the other project is as it was."""
    with stage(example) as s:
        prepare(example, s)
        assert transfer(s, "alice") == 202
        assert accept(s, "mallory", MARS) == 404
        accept(s, "mallory")
        assert [holder(example, s), holder(example, s, MARS)] == [GLOBEX, ACME]
        for user in ("mallory", "dave"):
            assert s.client(user).get(f"/projects/{MOON}").json == {"name": "moon"}
        assert s.client("alice").get(f"/projects/{MOON}").status_code == 404
        assert s.client("carol").get(f"/projects/{MARS}").json == {"name": "mars"}


def legitimate_other_recipient(example: Example) -> None:
    """Alice hands the project to Initech, and Globex cannot take it; before, colleague, freelancer and link work."""
    with stage(example) as s:
        prepare(example, s)
        assert [s.client(user).get(f"/projects/{MOON}").status_code for user in ("bob", "carol", "dave")] == [
            200,
            200,
            404,
        ]
        assert s.app.test_client().get("/shared/link").json == {"name": "moon"}
        assert transfer(s, "alice", INITECH) == 202
        assert accept(s, "mallory") == 404
        assert holder(example, s) != GLOBEX
        assert transfer(s, "mallory") == 404
