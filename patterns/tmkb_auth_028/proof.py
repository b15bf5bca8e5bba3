"""Alice, administrator of Acme, has made the keys; two projects are Acme's. How keys are made and shown is left out."""

import hashlib

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

ACME, GLOBEX = 1, 2
ALICE = 1
SHOP, BLOG = 1, 2  # projects of Acme
METRICS, DEPLOY = "metrics-key", "deploy-key"


def prepare(example: Example, s: Stage) -> None:
    """One key of Alice's reads the shop's metrics, the other may delete the shop as well."""
    with s.app.app_context():
        db.session.add_all([example.Project(id=id_, organization_id=ACME, visits=100 * id_) for id_ in (SHOP, BLOG)])
        for key, grants in ((METRICS, ["metrics:read"]), (DEPLOY, ["metrics:read", "project:delete"])):
            row = example.ApiKey(digest=hashlib.sha256(key.encode()).hexdigest(), grants=grants, project_id=SHOP)
            row.creator_id, row.creator_role, row.organization_id = ALICE, "admin", ACME
            db.session.add(row)
        db.session.commit()


def delete(s: Stage, key: str, project_id: int) -> int:
    return s.app.test_client().delete(f"/projects/{project_id}", headers={"X-Api-Key": key}).status_code


def metrics(s: Stage, key: str, project_id: int) -> tuple[int, object]:
    answer = s.app.test_client().get(f"/projects/{project_id}/metrics", headers={"X-Api-Key": key})
    return answer.status_code, answer.json


def left(example: Example, s: Stage) -> list[int]:
    with s.app.app_context():
        return list(db.session.scalars(db.select(example.Project.id).order_by(example.Project.id)))


def deleted(example: Example, s: Stage, key: str, project_id: int) -> Outcome:
    """What comes of deleting a project with a key."""
    code = delete(s, key, project_id)
    rest = left(example, s)
    return outcome(
        gained=code == 204 and project_id not in rest,
        refused=code == 403 and rest == [SHOP, BLOG],
        evidence=f"{code} {rest}",
    )


def exploit_more_than_granted(example: Example) -> Outcome:
    """A dashboard's key, made for reading metrics, is stolen and deletes the project, because Alice could."""
    with stage(example) as s:
        prepare(example, s)
        return deleted(example, s, METRICS, SHOP)


def exploit_other_project(example: Example) -> Outcome:
    """The key that deploys the shop deletes another project of Acme."""
    with stage(example) as s:
        prepare(example, s)
        return deleted(example, s, DEPLOY, BLOG)


def exploit_demoted_creator(example: Example) -> Outcome:
    """Alice is no longer an administrator, and through the key that she kept she still deletes."""
    with stage(example) as s:
        prepare(example, s)
        with s.app.app_context():
            db.session.get(User, ALICE).role = "member"
            db.session.commit()
        return deleted(example, s, DEPLOY, SHOP)


def exploit_creator_who_left(example: Example) -> Outcome:
    """Alice has gone to Globex as an administrator, and her key goes on in Acme."""
    with stage(example) as s:
        prepare(example, s)
        with s.app.app_context():
            db.session.get(User, ALICE).organization_id = GLOBEX
            db.session.commit()
        return deleted(example, s, DEPLOY, SHOP)


def exploit_deleted_creator(example: Example) -> Outcome:
    """Alice's account is deleted, and the key that nobody answers for any more still works."""
    with stage(example) as s:
        prepare(example, s)
        with s.app.app_context():
            db.session.delete(db.session.get(User, ALICE))
            db.session.commit()
        return deleted(example, s, DEPLOY, SHOP)


def legitimate_metrics(example: Example) -> None:
    """The dashboard's key reads the shop's metrics, also after Alice became a plain member; a wrong key gets 401."""
    with stage(example) as s:
        prepare(example, s)
        assert metrics(s, METRICS, SHOP) == (200, {"visits": 100})
        with s.app.app_context():
            db.session.get(User, ALICE).role = "member"
            db.session.commit()
        assert metrics(s, METRICS, SHOP) == (200, {"visits": 100})
        assert metrics(s, "guessed", SHOP)[0] == 401


def legitimate_delete(example: Example) -> None:
    """The deploying key deletes the shop that it was made for."""
    with stage(example) as s:
        prepare(example, s)
        assert delete(s, DEPLOY, SHOP) == 204
        assert left(example, s) == [BLOG]
