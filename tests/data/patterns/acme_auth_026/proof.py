"""Tokens are real JWTs; only their age is short, because the proof demotes right after signing in."""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

KEY = "0123456789abcdef0123456789abcdef"
ALICE, BOB = 1, 2
NAMES = ["alice", "bob", "mallory"]


def bearer(example: Example, s: Stage, user_id: int) -> dict[str, str]:
    with s.app.app_context():
        return {"Authorization": "Bearer " + example.issue_token(db.session.get(User, user_id))}


def exploit_demoted(example: Example) -> Outcome:
    """Alice is no longer an administrator; with this morning's token she still lists every user."""
    with stage(example, JWT_KEY=KEY) as s:
        headers = bearer(example, s, ALICE)
        with s.app.app_context():
            example.set_role(db.session.get(User, ALICE), "member")
        answer = s.app.test_client().get("/admin/users", headers=headers)
    return outcome(gained=answer.json == NAMES, refused=answer.status_code == 403, evidence=answer.text)


def exploit_deleted_account(example: Example) -> Outcome:
    """Alice's account is deleted; her token lives on."""
    with stage(example, JWT_KEY=KEY) as s:
        headers = bearer(example, s, ALICE)
        with s.app.app_context():
            db.session.delete(db.session.get(User, ALICE))
            db.session.commit()
        answer = s.app.test_client().get("/admin/users", headers=headers)
    return outcome(gained=answer.json == NAMES[1:], refused=answer.status_code == 403, evidence=answer.text)


def legitimate_admin(example: Example) -> None:
    """An administrator's token works, a member's does not, and a new one after a promotion does."""
    with stage(example, JWT_KEY=KEY) as s:
        client = s.app.test_client()
        assert client.get("/admin/users", headers=bearer(example, s, ALICE)).json == NAMES
        assert client.get("/admin/users", headers=bearer(example, s, BOB)).status_code == 403
        with s.app.app_context():
            example.set_role(db.session.get(User, BOB), "admin")
        assert client.get("/admin/users", headers=bearer(example, s, BOB)).json == NAMES
