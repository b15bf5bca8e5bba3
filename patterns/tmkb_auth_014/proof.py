"""Bodies name projects and people; which row was written is read from the database, apart from the answer."""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME, GLOBEX = 1, 2
ALICE, BOB, MALLORY = 1, 2, 3
WEBSITE, SHOP, PAYROLL, MERGER = 1, 2, 3, 4  # two that Bob manages, one of Alice, one of Globex
EXISTING = 1  # a task of Bob in the first


def plan(example: Example, s: Stage) -> None:
    projects = {
        WEBSITE: ("Website", BOB, ACME),
        SHOP: ("Shop", BOB, ACME),
        PAYROLL: ("Payroll", ALICE, ACME),
        MERGER: ("Merger with Initech", MALLORY, GLOBEX),
    }
    with s.app.app_context():
        for project_id, (name, manager, organization) in projects.items():
            project = example.Project(id=project_id, name=name, manager_id=manager, organization_id=organization)
            db.session.add(project)
        db.session.add(example.Task(id=EXISTING, title="Logo", project_id=WEBSITE, assignee_id=BOB))
        db.session.commit()


BEFORE = [("Logo", WEBSITE, BOB)]


def tasks(example: Example, s: Stage) -> list[tuple[str, int, int]]:
    with s.app.app_context():
        rows = db.session.scalars(db.select(example.Task).order_by("id"))
        return [(task.title, task.project_id, task.assignee_id) for task in rows]


def created(example: Example, project_id: int, assignee_id: int) -> Outcome:
    """What came of Bob's task for this project and this person."""
    with stage(example) as s:
        plan(example, s)
        body = {"title": "Audit", "project_id": project_id, "assignee_id": assignee_id}
        answer = s.client("bob").post("/tasks", json=body)
        rows = tasks(example, s)
    return outcome(
        gained=answer.status_code == 201 and ("Audit", project_id, assignee_id) in rows,
        refused=answer.status_code == 404 and rows == BEFORE,
        evidence=f"{answer.status_code} {answer.text} {rows}",
    )


def exploit_foreign_project(example: Example) -> Outcome:
    """Bob, a member of Acme, creates a task whose project_id is that of Globex's project, and it appears there."""
    return created(example, MERGER, BOB)


def exploit_visible_project(example: Example) -> Outcome:
    """Bob plans a task into Alice's project, which he may see and may not plan."""
    return created(example, PAYROLL, BOB)


def exploit_foreign_assignee(example: Example) -> Outcome:
    """Bob counts up assignee_id in a task of his own, and each answer names a person of another organization."""
    return created(example, WEBSITE, MALLORY)


def exploit_moved_task(example: Example) -> Outcome:
    """Bob moves a task of his own to Globex's project and reads that project's name in the answer."""
    with stage(example) as s:
        plan(example, s)
        answer = s.client("bob").patch(f"/tasks/{EXISTING}", json={"project_id": MERGER})
        rows = tasks(example, s)
    return outcome(
        gained="Merger with Initech" in answer.text and rows == [("Logo", MERGER, BOB)],
        refused=answer.status_code == 404 and rows == BEFORE,
        evidence=f"{answer.status_code} {answer.text} {rows}",
    )


def legitimate_task(example: Example) -> None:
    """Bob plans a task for Alice in the second of his projects."""
    with stage(example) as s:
        plan(example, s)
        bob = s.client("bob")
        assert bob.get("/projects").json == {"Website": WEBSITE, "Shop": SHOP, "Payroll": PAYROLL}
        answer = bob.post("/tasks", json={"title": "Cart", "project_id": SHOP, "assignee_id": ALICE})
        assert answer.status_code == 201 and answer.json["assignee"] == "alice"
        assert tasks(example, s) == [*BEFORE, ("Cart", SHOP, ALICE)]


def legitimate_move(example: Example) -> None:
    """Bob moves his task from one of his projects to the other; Alice cannot move it."""
    with stage(example) as s:
        plan(example, s)
        assert s.client("alice").patch(f"/tasks/{EXISTING}", json={"project_id": PAYROLL}).status_code == 404
        assert s.client("bob").patch(f"/tasks/{EXISTING}", json={"project_id": SHOP}).status_code == 200
        assert tasks(example, s) == [("Logo", SHOP, BOB)]
