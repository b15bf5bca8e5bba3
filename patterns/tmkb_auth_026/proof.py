"""Tokens are real JWTs; only their age is short, because the proof changes rights right after signing in."""

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, db, stage

KEY = "0123456789abcdef0123456789abcdef"
ALICE, BOB, MALLORY = 1, 2, 3
ACME, GLOBEX = 1, 2


def hire(example: Example, s: Stage) -> None:
    people = [(ALICE, "alice", "admin", ACME), (BOB, "bob", "member", ACME), (MALLORY, "mallory", "admin", GLOBEX)]
    with s.app.app_context():
        for id_, name, role, organization_id in people:
            db.session.add(example.Account(id=id_, name=name, role=role, organization_id=organization_id))
        db.session.commit()


def bearer(example: Example, s: Stage, account_id: int) -> dict[str, str]:
    with s.app.app_context():
        return {"Authorization": "Bearer " + example.issue_token(db.session.get(example.Account, account_id))}


def change(example: Example, s: Stage, account_id: int, role: str, organization_id: int | None) -> None:
    with s.app.app_context():
        example.change_membership(db.session.get(example.Account, account_id), role, organization_id)


def members(s: Stage, headers: dict[str, str]) -> tuple[int, list[str]]:
    answer = s.app.test_client().get("/admin/members", headers=headers)
    return answer.status_code, list(answer.json) if answer.status_code == 200 else []


def exploit_demoted(example: Example) -> Outcome:
    """Alice is no longer an administrator of Acme; with this morning's token she still lists its members."""
    with stage(example, JWT_KEY=KEY) as s:
        hire(example, s)
        headers = bearer(example, s, ALICE)
        change(example, s, ALICE, "member", ACME)
        status, names = members(s, headers)
    return outcome(gained=names == ["alice", "bob"], refused=status == 403, evidence=names)


def exploit_removed(example: Example) -> Outcome:
    """Alice is removed from Acme; until her token expires she sees who works there."""
    with stage(example, JWT_KEY=KEY) as s:
        hire(example, s)
        headers = bearer(example, s, ALICE)
        change(example, s, ALICE, "admin", None)
        status, names = members(s, headers)
    return outcome(gained="bob" in names, refused=status == 403, evidence=names)


def exploit_moved(example: Example) -> Outcome:
    """Alice has moved to Globex as its administrator; the token of before still opens Acme."""
    with stage(example, JWT_KEY=KEY) as s:
        hire(example, s)
        headers = bearer(example, s, ALICE)
        change(example, s, ALICE, "admin", GLOBEX)
        status, names = members(s, headers)
    return outcome(gained="bob" in names, refused=status == 403 or names == ["alice", "mallory"], evidence=names)


def exploit_deleted_account(example: Example) -> Outcome:
    """Alice's account is deleted; her token lives on."""
    with stage(example, JWT_KEY=KEY) as s:
        hire(example, s)
        headers = bearer(example, s, ALICE)
        with s.app.app_context():
            db.session.delete(db.session.get(example.Account, ALICE))
            db.session.commit()
        status, names = members(s, headers)
    return outcome(gained=names == ["bob"], refused=status == 403, evidence=names)


def legitimate_admin(example: Example) -> None:
    """An administrator's token works, a member's does not, a new one after a promotion does; without one it is 401."""
    with stage(example, JWT_KEY=KEY) as s:
        hire(example, s)
        assert members(s, bearer(example, s, ALICE)) == (200, ["alice", "bob"])
        assert members(s, bearer(example, s, BOB)) == (403, [])
        change(example, s, BOB, "admin", ACME)
        assert members(s, bearer(example, s, BOB)) == (200, ["alice", "bob"])
        assert members(s, {})[0] == 401
        assert members(s, {"Authorization": "Bearer x.y.z"})[0] == 401


def legitimate_colleagues_move(example: Example) -> None:
    """Bob moves to Globex; the tokens that the administrators had before still work and show who is there now."""
    with stage(example, JWT_KEY=KEY) as s:
        hire(example, s)
        alice, mallory = bearer(example, s, ALICE), bearer(example, s, MALLORY)
        assert members(s, mallory) == (200, ["mallory"])
        change(example, s, BOB, "member", GLOBEX)
        assert members(s, alice) == (200, ["alice"])
        assert members(s, mallory) == (200, ["bob", "mallory"])
