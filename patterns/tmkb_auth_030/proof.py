"""Tokens are rows, in place of what an authorization server gives out; how an app comes by one is out of scope.

Alice owns the project, Bob is an editor, Mallory only views it.
"""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

ALICE, BOB, MALLORY = 1, 2, 3
PROJECT = 1


def prepare(example: Example, s: Stage, user_id: int, scope: str) -> None:
    """The project with its three people, and the token "app" that one of them gave to an app."""
    with s.app.app_context():
        db.session.add(example.Project(id=PROJECT, name="apollo"))
        for member, role in ((ALICE, "owner"), (BOB, "editor"), (MALLORY, "viewer")):
            db.session.add(example.ProjectMember(project_id=PROJECT, user_id=member, role=role))
        db.session.add(example.AccessToken(token="app", user_id=user_id, scope=scope))
        db.session.commit()


def rename(s: Stage, token: str = "app") -> int:
    client = s.app.test_client()
    headers = {"Authorization": f"Bearer {token}"}
    return client.patch(f"/api/projects/{PROJECT}", json={"name": "gemini"}, headers=headers).status_code


def delete(s: Stage, token: str = "app") -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return s.app.test_client().delete(f"/api/projects/{PROJECT}", headers=headers).status_code


def name(example: Example, s: Stage) -> str | None:
    """The project's name; None when it is gone."""
    with s.app.app_context():
        project = db.session.get(example.Project, PROJECT)
        return None if project is None else str(project.name)


def observed(example: Example, s: Stage, code: int, gained: str | None) -> Outcome:
    now = name(example, s)
    return outcome(
        gained=code == 204 and now == gained, refused=code == 403 and now == "apollo", evidence=f"{code} {now}"
    )


def exploit_viewer_with_scope(example: Example) -> Outcome:
    """Mallory, who may only view the project, lets an app have projects:write, and through it renames the project."""
    with stage(example) as s:
        prepare(example, s, MALLORY, "projects:read projects:write")
        return observed(example, s, rename(s), "gemini")


def exploit_member_no_more(example: Example) -> Outcome:
    """Bob lets an app have projects:write, is taken out of the project, and the app goes on renaming it."""
    with stage(example) as s:
        prepare(example, s, BOB, "projects:write")
        with s.app.app_context():
            db.session.delete(db.session.get(example.ProjectMember, (PROJECT, BOB)))
            db.session.commit()
        return observed(example, s, rename(s), "gemini")


def exploit_reading_app(example: Example) -> Outcome:
    """Alice lets an app read her projects, and the app deletes one, because she could."""
    with stage(example) as s:
        prepare(example, s, ALICE, "projects:read")
        return observed(example, s, delete(s), None)


def exploit_writing_app(example: Example) -> Outcome:
    """Alice lets an app write; deleting is a scope of its own, which the app never asked for, and it deletes."""
    with stage(example) as s:
        prepare(example, s, ALICE, "projects:read projects:write")
        return observed(example, s, delete(s), None)


def legitimate_editor(example: Example) -> None:
    """Bob's app with projects:write renames the project, and deletes nothing; an unknown token gets 401."""
    with stage(example) as s:
        prepare(example, s, BOB, "projects:read projects:write")
        assert rename(s) == 204
        assert delete(s) == 403
        assert name(example, s) == "gemini"
        assert rename(s, "guessed") == 401


def legitimate_owner(example: Example) -> None:
    """Alice's app with projects:delete deletes the project and could not have renamed it."""
    with stage(example) as s:
        prepare(example, s, ALICE, "projects:delete")
        assert rename(s) == 403
        assert delete(s) == 204
        assert name(example, s) is None
