"""Alice is an administrator at Acme and a viewer at Globex; each request names the organization in a header."""

from werkzeug.test import TestResponse

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME, GLOBEX = 1, 2
ALICE, BOB, MALLORY = 1, 2, 3
ROADMAP, MERGER = 1, 2  # projects of Acme and of Globex


def found(example: Example, s: Stage) -> None:
    """The memberships, the earliest first, and a project of each organization; Bob has left Acme."""
    with s.app.app_context():
        for user_id, organization_id, role in (
            (MALLORY, GLOBEX, "admin"),
            (ALICE, ACME, "admin"),
            (ALICE, GLOBEX, "viewer"),
        ):
            db.session.add(example.Membership(user_id=user_id, organization_id=organization_id, role=role))
        db.session.add(example.Project(id=ROADMAP, organization_id=ACME))
        db.session.add(example.Project(id=MERGER, organization_id=GLOBEX))
        db.session.commit()


def projects(example: Example, s: Stage) -> list[int]:
    with s.app.app_context():
        return list(db.session.scalars(db.select(example.Project.id).order_by(example.Project.id)))


def ask(s: Stage, method: str, user: str, path: str, organization: int) -> TestResponse:
    return s.client(user).open(path, method=method, headers={"X-Org-Id": str(organization)})


def deletion(example: Example, user: str, organization: int, project: int, status: int) -> Outcome:
    """Whether ``user`` deletes ``project`` with ``organization`` in the header; ``status`` is the refusal."""
    with stage(example) as s:
        found(example, s)
        answer = ask(s, "DELETE", user, f"/projects/{project}", organization)
        left = projects(example, s)
    return outcome(
        gained=project not in left,
        refused=answer.status_code == status and left == [ROADMAP, MERGER],
        evidence=f"{answer.status_code} {left}",
    )


def exploit_viewer_deletes(example: Example) -> Outcome:
    """Alice, who may only look at Globex, names it in the header and deletes its project as administrator of Acme."""
    return deletion(example, "alice", GLOBEX, MERGER, 403)


def exploit_stranger_deletes(example: Example) -> Outcome:
    """Mallory, administrator at Globex and no member of Acme, names Acme and deletes its project."""
    return deletion(example, "mallory", ACME, ROADMAP, 404)


def exploit_former_member(example: Example) -> Outcome:
    """Bob has left Acme, but his account still has it as its organization, and so he lists its projects."""
    with stage(example) as s:
        found(example, s)
        answer = s.client("bob").get("/projects")
    return outcome(
        gained=answer.json == {"projects": [ROADMAP]},
        refused=answer.status_code == 404,
        evidence=answer.status_code,
    )


def legitimate_switch(example: Example) -> None:
    """Alice looks at Globex and switches back to Acme, where she deletes a project."""
    with stage(example) as s:
        found(example, s)
        assert ask(s, "GET", "alice", "/projects", GLOBEX).json == {"projects": [MERGER]}
        assert ask(s, "DELETE", "alice", f"/projects/{MERGER}", ACME).status_code == 404
        assert ask(s, "DELETE", "alice", f"/projects/{ROADMAP}", ACME).status_code == 204
        assert projects(example, s) == [MERGER]


def legitimate_own(example: Example) -> None:
    """Mallory deletes a project of Globex without naming it; a client that is not signed in is sent away."""
    with stage(example) as s:
        found(example, s)
        assert s.client("mallory").delete(f"/projects/{MERGER}").status_code == 204
        assert s.app.test_client().get("/projects").status_code == 401
