"""The function upgrade() stands for that of an Alembic revision; the columns are there and empty before it runs."""

from typing import Any

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ACME, GLOBEX = 1, 2  # the organizations, and the project of each
ALICE, BOB, MALLORY, FORMER = 1, 2, 3, 4
MOVED, LOOSE = ("plan.pdf", BOB, GLOBEX), ("offer.pdf", FORMER, None)


def write(example: Example, s: Stage, *extra: Any) -> None:
    attachments = [("payroll.pdf", ALICE, ACME), ("door.pdf", MALLORY, GLOBEX), *extra]
    with s.app.app_context():
        for organization_id in (ACME, GLOBEX):
            db.session.add(example.Project(id=organization_id, organization_id=organization_id))
        for user_id, role in ((ALICE, "admin"), (BOB, "member"), (MALLORY, "admin")):
            db.session.add(example.Member(user_id=user_id, role=role))
        for name, uploader_id, project_id in attachments:
            db.session.add(example.Attachment(name=name, uploader_id=uploader_id, project_id=project_id))
        db.session.commit()


def upgrade(example: Example, s: Stage) -> str:
    try:
        with s.app.app_context():
            example.upgrade()
    except ValueError as refusal:
        return str(refusal)
    return "done"


def names(s: Stage, user: str) -> list[str]:
    return sorted(s.client(user).get("/attachments").json)


def exploit_guessed_organization(example: Example) -> Outcome:
    """Bob has moved from Globex to Acme; what he uploaded at Globex goes with him, and Alice reads it."""
    with stage(example) as s:
        write(example, s, MOVED)
        result = upgrade(example, s)
        acme, globex = names(s, "alice"), names(s, "mallory")
    return outcome(
        gained="plan.pdf" in acme,
        refused=result == "done" and acme == ["payroll.pdf"] and globex == ["door.pdf", "plan.pdf"],
        evidence=f"{acme} {globex}",
    )


def exploit_loose_row(example: Example) -> Outcome:
    """An attachment without project, whose uploader is gone, ends without organization, and all of them see it."""
    with stage(example) as s:
        write(example, s, LOOSE)
        result = upgrade(example, s)
        seen = [*names(s, "bob"), *names(s, "mallory")]
    return outcome(
        gained=seen.count("offer.pdf") == 2,
        refused=result != "done" and "offer.pdf" not in seen,
        evidence=f"{result}: {seen}",
    )


def exploit_default_right(example: Example) -> Outcome:
    """Bob, a member, may export after the migration, since the new right was given to everybody there was."""
    with stage(example) as s:
        write(example, s)
        assert upgrade(example, s) == "done"
        answer = s.client("bob").get("/attachments/export")
    return outcome(
        gained="payroll.pdf" in answer.text,
        refused=answer.status_code == 403,
        evidence=f"{answer.status_code} {answer.text}",
    )


def legitimate_upgrade(example: Example) -> None:
    """Attachments of a project keep their readers."""
    with stage(example) as s:
        write(example, s)
        assert upgrade(example, s) == "done"
        assert names(s, "bob") == names(s, "alice") == ["payroll.pdf"]
        assert names(s, "mallory") == ["door.pdf"]


def legitimate_export(example: Example) -> None:
    """Administrators may export what is their organization's."""
    with stage(example) as s:
        write(example, s)
        assert upgrade(example, s) == "done"
        assert s.client("alice").get("/attachments/export").text == "payroll.pdf"
        assert s.client("mallory").get("/attachments/export").text == "door.pdf"
