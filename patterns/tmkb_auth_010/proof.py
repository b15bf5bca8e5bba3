"""Members read the projects of their organization and their own tasks; budgets and other tasks are for its admins."""

from typing import Any

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME = 1
ALICE, BOB, MALLORY = 1, 2, 3
MOVE, LAYOFFS, PLAN, PARTY = 1, 2, 3, 4  # the tasks; the last belongs to a project without a budget
MOVERS = {"title": "Book the movers"}
LYON = {"name": "Relocation to Lyon"}


def plan(example: Example, s: Stage) -> None:
    with s.app.app_context():
        db.session.add_all(
            [
                example.Project(id=1, organization_id=ACME, **LYON),
                example.Project(id=2, organization_id=ACME, name="Summer party"),
                example.Budget(id=1, project_id=1, total=900_000),
                example.Task(id=MOVE, project_id=1, assignee_id=BOB, **MOVERS),
                example.Task(id=LAYOFFS, project_id=1, assignee_id=ALICE, title="Choose who is let go"),
                example.Task(id=PLAN, project_id=1, assignee_id=MALLORY, title="Draw the floor plan"),
                example.Task(id=PARTY, project_id=2, assignee_id=ALICE, title="Hire a band"),
            ]
        )
        db.session.commit()


def seen(s: Stage, user: str, task: int, expand: str = "") -> Any:
    return s.client(user).get(f"/tasks/{task}", query_string={"expand": expand}).json


def attack(example: Example, user: str, task: int, expand: str, secret: str, allowed: Any) -> Outcome:
    """Whether ``secret`` is among what ``user`` sees, or exactly what is ``allowed``."""
    with stage(example) as s:
        plan(example, s)
        answer = seen(s, user, task, expand)
    return outcome(gained=secret in str(answer), refused=answer == allowed, evidence=answer)


def exploit_budget(example: Example) -> Outcome:
    """Bob, a member of Acme, opens his own task with ?expand=project.budget and reads the budget kept for admins."""
    allowed = MOVERS | {"project": LYON | {"budget": None}}
    return attack(example, "bob", MOVE, "project.budget", "900000", allowed)


def exploit_guest(example: Example) -> Outcome:
    """Mallory of Globex, a guest who was given one task, expands it to the confidential project around it."""
    allowed = {"title": "Draw the floor plan", "project": None}
    return attack(example, "mallory", PLAN, "project", "Relocation to Lyon", allowed)


def exploit_siblings(example: Example) -> Outcome:
    """Bob goes up to the project and down again, and the list shows the tasks of his colleagues."""
    allowed = MOVERS | {"project": LYON | {"tasks": [MOVERS]}}
    return attack(example, "bob", MOVE, "project.tasks", "Choose who is let go", allowed)


def exploit_roundabout(example: Example) -> Outcome:
    """Bob reaches the budget by a longer way, through the tasks of his project and back to it."""
    allowed = MOVERS | {"project": LYON | {"tasks": [MOVERS | {"project": LYON | {"budget": None}}]}}
    return attack(example, "bob", MOVE, "project.tasks.project.budget", "900000", allowed)


def legitimate_admin(example: Example) -> None:
    """Alice, an admin of Acme, expands to the budget and to all tasks; where there is no budget, she sees none."""
    with stage(example) as s:
        plan(example, s)
        assert seen(s, "alice", MOVE, "project.budget") == MOVERS | {"project": LYON | {"budget": {"total": 900_000}}}
        assert len(seen(s, "alice", LAYOFFS, "project.tasks")["project"]["tasks"]) == 3
        assert seen(s, "alice", PARTY, "project.budget")["project"]["budget"] is None
        assert s.client("alice").get("/budgets/1").json == {"total": 900_000}


def legitimate_assignee(example: Example) -> None:
    """Bob reads his task and its project, Mallory hers; neither opens the budget or another's task directly."""
    with stage(example) as s:
        plan(example, s)
        assert seen(s, "bob", MOVE, "project") == MOVERS | {"project": LYON}
        assert seen(s, "mallory", PLAN) == {"title": "Draw the floor plan"}
        for user in ("bob", "mallory"):
            assert s.client(user).get(f"/tasks/{LAYOFFS}").status_code == 404
            assert s.client(user).get("/budgets/1").status_code == 404
