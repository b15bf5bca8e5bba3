"""A small object stands for the policy service, which has rules for reading and publishing and none for deleting.

Its failure is a TimeoutError that it raises. That all endpoints have a rule at start-up is advised, not tried here.
"""

from collections.abc import Callable

from werkzeug.test import TestResponse

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Document, Stage, User, db, stage

ACME, BOB = 1, 2


def document(s: Stage) -> str:
    """The state of Acme's document, or gone."""
    with s.app.app_context():
        found = db.session.get(Document, ACME)
        return str(found.state) if found else "gone"


def attack(s: Stage, ask: Callable[[], TestResponse], wanted: str) -> Outcome:
    answer = ask()
    now = document(s)
    return outcome(
        gained=now == wanted,
        refused=answer.status_code == 403 and now == "new",
        evidence=f"{answer.status_code} {now}",
    )


def exploit_action_without_rule(example: Example) -> Outcome:
    """Bob, a member, uses the new button that deletes a document, for which nobody has written a rule yet."""
    with stage(example) as s:
        return attack(s, lambda: s.client("bob").delete(f"/documents/{ACME}"), "gone")


def exploit_policy_timeout(example: Example) -> Outcome:
    """Bob publishes, which only administrators may, while the policy service does not answer."""
    with stage(example) as s:
        example.policy.down = True
        return attack(s, lambda: s.client("bob").post(f"/documents/{ACME}/publish"), "published")


def exploit_unknown_role(example: Example) -> Outcome:
    """Bob's role became suspended, which the table of ranks does not know; he goes on reading as a member."""
    with stage(example) as s:
        with s.app.app_context():
            db.session.get(User, BOB).role = "suspended"
            db.session.commit()
        answer = s.client("bob").get(f"/documents/{ACME}")
    return outcome(
        gained=answer.json == {"title": "Acme payroll"},
        refused=answer.status_code == 403,
        evidence=answer.status,
    )


def legitimate_member(example: Example) -> None:
    """Bob reads Acme's document and is refused to publish it, as the rules say."""
    with stage(example) as s:
        assert s.client("bob").get(f"/documents/{ACME}").json == {"title": "Acme payroll"}
        assert s.client("bob").post(f"/documents/{ACME}/publish").status_code == 403
        assert s.client("mallory").get(f"/documents/{ACME}").status_code == 404


def legitimate_administrator(example: Example) -> None:
    """Alice, an administrator, publishes; once a rule for deleting is written, she deletes and Bob does not."""
    with stage(example) as s:
        assert s.client("alice").post(f"/documents/{ACME}/publish").status_code == 204
        assert document(s) == "published"
        example.policy.rules["document.delete"] = "admin"
        assert s.client("bob").delete(f"/documents/{ACME}").status_code == 403
        assert s.client("alice").delete(f"/documents/{ACME}").status_code == 204
        assert document(s) == "gone"
