"""Sam and Tina are support agents of the operator and belong to no organization; passwords are left unhashed.

That the customer sees the trail, and that granting access is a deliberate act of theirs, is not claimed.
"""

from datetime import timedelta

from flask.testing import FlaskClient

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Stage, User, db, stage

ACME, GLOBEX = 1, 2
BOB, MALLORY, SAM, TINA = 2, 3, 4, 5


def prepare(example: Example, s: Stage, agent: int = SAM, organization_id: int = ACME, hours: int = 1) -> None:
    """Two agents, the profiles of two customers, and one grant, which ends in ``hours``."""
    until = example.now() + timedelta(hours=hours)
    with s.app.app_context():
        db.session.add_all([User(id=SAM, name="sam", role="support"), User(id=TINA, name="tina", role="support")])
        db.session.add_all([example.Profile(user_id=user_id) for user_id in (BOB, MALLORY)])
        db.session.add(example.SupportGrant(agent_id=agent, organization_id=organization_id, until=until))
        db.session.commit()


def acting(s: Stage, user_id: int) -> FlaskClient:
    sam = s.client("sam")
    assert sam.post(f"/support/act-as/{user_id}").status_code == 204
    return sam


def profile(example: Example, s: Stage, user_id: int) -> tuple[str, str]:
    with s.app.app_context():
        row = db.session.get(example.Profile, user_id)
        return str(row.language), str(row.password)


def trail(example: Example, s: Stage) -> list[tuple[str, int, int | None]]:
    with s.app.app_context():
        entries = db.session.scalars(db.select(example.AuditEntry)).all()
        return [(entry.action, entry.actor_id, entry.acting_as_id) for entry in entries]


def observed(example: Example, s: Stage, user_id: int) -> Outcome:
    """What comes of Sam changing the language of a customer's profile."""
    code = acting(s, user_id).put("/profile/language", json={"language": "fr"}).status_code
    language, _ = profile(example, s, user_id)
    return outcome(
        gained=code == 204 and language == "fr",
        refused=code == 403 and language == "en" and not trail(example, s),
        evidence=f"{code} {language}",
    )


def exploit_password(example: Example) -> Outcome:
    """Sam, let in by Acme to look at a problem, sets a new password for Bob, and the trail says that Bob did."""
    with stage(example) as s:
        prepare(example, s)
        code = acting(s, BOB).put("/profile/password", json={"password": "new"}).status_code
        _, password = profile(example, s, BOB)
        entries = trail(example, s)
    return outcome(
        gained=password == "new" and entries == [("password changed", BOB, None)],
        refused=code == 403 and password == "old" and not entries,
        evidence=f"{code} {password} {entries}",
    )


def exploit_nameless_trail(example: Example) -> Outcome:
    """Sam changes Bob's language, which is allowed, and Sam is nowhere in the trail."""
    with stage(example) as s:
        prepare(example, s)
        assert acting(s, BOB).put("/profile/language", json={"language": "fr"}).status_code == 204
        entries = trail(example, s)
    return outcome(
        gained=entries == [("language changed", BOB, None)],
        refused=entries == [("language changed", SAM, BOB)],
        evidence=entries,
    )


def exploit_other_tenant(example: Example) -> Outcome:
    """Sam, let in by Acme, goes on to Mallory of Globex, which has asked for nothing."""
    with stage(example) as s:
        prepare(example, s)
        return observed(example, s, MALLORY)


def exploit_other_agent(example: Example) -> Outcome:
    """Acme has let Tina in, and Sam, another agent, makes use of it."""
    with stage(example) as s:
        prepare(example, s, agent=TINA)
        return observed(example, s, BOB)


def exploit_expired(example: Example) -> Outcome:
    """The hour that Acme gave Sam is over, and Sam goes on."""
    with stage(example) as s:
        prepare(example, s, hours=-1)
        return observed(example, s, BOB)


def legitimate_support(example: Example) -> None:
    """Sam sees Bob's profile within the hour; Mallory, a customer, can act as nobody."""
    with stage(example) as s:
        prepare(example, s)
        assert acting(s, BOB).get("/profile").json == {"language": "en"}
        assert s.client("mallory").post(f"/support/act-as/{BOB}").status_code == 403


def legitimate_customer(example: Example) -> None:
    """Bob changes his own language and password, and the trail names him."""
    with stage(example) as s:
        prepare(example, s)
        bob = s.client("bob")
        assert bob.put("/profile/password", json={"password": "new"}).status_code == 204
        assert bob.put("/profile/language", json={"language": "fr"}).status_code == 204
        assert profile(example, s, BOB) == ("fr", "new")
        assert [(action, actor) for action, actor, _ in trail(example, s)] == [
            ("password changed", BOB),
            ("language changed", BOB),
        ]
