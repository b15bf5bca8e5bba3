"""The outer number is always one that Bob may use; the inner one belongs elsewhere."""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME, GLOBEX = 1, 2
ALICE, BOB, MALLORY = 1, 2, 3
WEBSITE, LAYOFFS, MERGER = 1, 2, 3  # open to all of Acme, closed to all but Alice, Globex's
TEXTS = ["Looks good", "Ten people go", "We offer 40 million"]  # a comment of the same number in each


def discuss(example: Example, s: Stage) -> None:
    projects = {WEBSITE: (ACME, False, ALICE), LAYOFFS: (ACME, True, ALICE), MERGER: (GLOBEX, False, MALLORY)}
    with s.app.app_context():
        for project_id, (organization, closed, lead) in projects.items():
            db.session.add(example.Project(id=project_id, organization_id=organization, private=closed, lead_id=lead))
            db.session.add(example.Comment(id=project_id, text=TEXTS[project_id - 1], project_id=project_id))
        db.session.commit()


def texts(example: Example, s: Stage) -> list[str]:
    with s.app.app_context():
        return list(db.session.scalars(db.select(example.Comment.text).order_by(example.Comment.id)))


def reading(example: Example, comment_id: int) -> Outcome:
    """What Bob reads of this comment under the one project that is open to him."""
    with stage(example) as s:
        discuss(example, s)
        bob = s.client("bob")
        assert bob.get(f"/projects/{comment_id}/comments/{comment_id}").status_code == 404
        answer = bob.get(f"/projects/{WEBSITE}/comments/{comment_id}")
    return outcome(gained=TEXTS[comment_id - 1] in answer.text, refused=answer.status_code == 404, evidence=answer.text)


def exploit_foreign_comment(example: Example) -> Outcome:
    """Bob, a member of Acme, asks for Globex's comment under the number of his own project and reads it."""
    return reading(example, MERGER)


def exploit_closed_project(example: Example) -> Outcome:
    """Bob reads a comment of an Acme project that is closed to him, through one that is open."""
    return reading(example, LAYOFFS)


def exploit_edited_comment(example: Example) -> Outcome:
    """Bob rewrites Globex's comment in the same way."""
    with stage(example) as s:
        discuss(example, s)
        answer = s.client("bob").put(f"/projects/{WEBSITE}/comments/{MERGER}", json={"text": "We offer nothing"})
        after = texts(example, s)
    return outcome(
        gained=after[MERGER - 1] == "We offer nothing",
        refused=answer.status_code == 404 and after == TEXTS,
        evidence=f"{answer.status_code} {after}",
    )


def legitimate_member(example: Example) -> None:
    """Bob reads and rewrites the comment of the project that is open to him."""
    with stage(example) as s:
        discuss(example, s)
        address = f"/projects/{WEBSITE}/comments/{WEBSITE}"
        assert s.client("bob").get(address).json == {"text": "Looks good"}
        assert s.client("bob").put(address, json={"text": "Ship it"}).status_code == 204
        assert texts(example, s) == ["Ship it", *TEXTS[1:]]


def legitimate_lead(example: Example) -> None:
    """Alice reads the comment of the project that is closed to others."""
    with stage(example) as s:
        discuss(example, s)
        answer = s.client("alice").get(f"/projects/{LAYOFFS}/comments/{LAYOFFS}")
        assert answer.json == {"text": "Ten people go"}
