"""Two requests that should be answered alike are compared, status and body. Timing is not measured and not claimed."""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME, GLOBEX = 1, 2
WEBSITE, MERGER, ABSENT = 1, 2, 99  # a project of Acme, one of Globex, none


def begin(example: Example, s: Stage) -> None:
    with s.app.app_context():
        db.session.add(example.Project(id=WEBSITE, slug="website", organization_id=ACME))
        db.session.add(example.Project(id=MERGER, slug="merger-initech", organization_id=GLOBEX))
        db.session.commit()


def slugs(example: Example, s: Stage) -> list[tuple[str, int]]:
    with s.app.app_context():
        rows = db.session.scalars(db.select(example.Project).order_by("id"))
        return [(project.slug, project.organization_id) for project in rows]


BEFORE = [("website", ACME), ("merger-initech", GLOBEX)]


def compared(example: Example, user: str, foreign: int) -> Outcome:
    """How the answers for a foreign and for an absent project differ."""
    with stage(example) as s:
        begin(example, s)
        there = s.client(user).delete(f"/projects/{foreign}")
        absent = s.client(user).delete(f"/projects/{ABSENT}")
        assert slugs(example, s) == BEFORE
    return outcome(
        gained=there.status_code == 403 and absent.status_code == 404,
        refused=there.status_code == absent.status_code == 404 and there.data == absent.data,
        evidence=f"{there.status_code} {there.text} / {absent.status_code} {absent.text}",
    )


def exploit_member(example: Example) -> Outcome:
    """Bob, a member of Acme, counts up project numbers and tells by 403 or 404 which of them Globex uses."""
    return compared(example, "bob", MERGER)


def exploit_administrator(example: Example) -> Outcome:
    """Mallory, who may delete projects at Globex, learns the same about Acme's."""
    return compared(example, "mallory", WEBSITE)


def exploit_taken_name(example: Example) -> Outcome:
    """Bob suspects a merger, asks for a project of that name, and is told that it is taken, which at Acme it is not."""
    with stage(example) as s:
        begin(example, s)
        answer = s.client("bob").post("/projects", json={"slug": "merger-initech"})
        after = slugs(example, s)
    return outcome(
        gained=answer.status_code == 409 and "taken" in answer.text,
        refused=answer.status_code == 201 and after == [*BEFORE, ("merger-initech", ACME)],
        evidence=f"{answer.status_code} {answer.text}",
    )


def legitimate_refusal(example: Example) -> None:
    """Bob, who sees the project and may not delete it, is told why; and a name that Acme uses is taken for him."""
    with stage(example) as s:
        begin(example, s)
        answer = s.client("bob").delete(f"/projects/{WEBSITE}")
        assert answer.status_code == 403 and "Only administrators" in answer.text
        assert s.client("bob").post("/projects", json={"slug": "website"}).status_code == 409
        assert slugs(example, s) == BEFORE


def legitimate_administrator(example: Example) -> None:
    """Alice deletes Acme's project and makes a new one."""
    with stage(example) as s:
        begin(example, s)
        assert s.client("alice").delete(f"/projects/{WEBSITE}").status_code == 204
        assert s.client("alice").post("/projects", json={"slug": "shop"}).status_code == 201
        assert slugs(example, s) == [("merger-initech", GLOBEX), ("shop", ACME)]
