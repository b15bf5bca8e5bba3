"""A worker outside any request takes the jobs, through the real serializer."""

import inspect
from typing import Any

from tmkb.authoring.proofs import Example, Outcome, outcome
from tmkb.authoring.proofs.stage import Document, Stage, User, db, stage

ACME, GLOBEX = 1, 2  # the document of each organization
ALICE, BOB = 1, 2


def state(s: Stage, document_id: int) -> str:
    with s.app.app_context():
        return str(db.session.get(Document, document_id).state)


def observed(s: Stage, document_id: int) -> Outcome:
    """What became of the one job that waits."""
    (result,) = s.results()
    reached = state(s, document_id)
    return outcome(
        gained=reached == "published",
        refused=isinstance(result, PermissionError) and reached == "new",
        evidence=repr(result),
    )


def exploit_planted_job(example: Example) -> Outcome:
    """A service that shares the broker plants a job: Bob of Acme, it says, wants Globex's document published."""
    with stage(example) as s:
        takes = len(inspect.signature(example.publish_document.run).parameters)
        arguments: list[Any] = [GLOBEX, BOB][:takes]
        with s.app.app_context():
            example.publish_document.delay(*arguments)
        return observed(s, GLOBEX)


def exploit_removed_member(example: Example) -> Outcome:
    """Bob has a document published and is removed from Acme before the worker comes to it; the job still runs."""
    with stage(example) as s:
        assert s.client("bob").post(f"/documents/{ACME}/publish").status_code == 202
        with s.app.app_context():
            db.session.get(User, BOB).organization_id = None
            db.session.commit()
        return observed(s, ACME)


def exploit_deleted_account(example: Example) -> Outcome:
    """Bob's account is deleted while his job waits; it runs in nobody's name."""
    with stage(example) as s:
        assert s.client("bob").post(f"/documents/{ACME}/publish").status_code == 202
        with s.app.app_context():
            db.session.delete(db.session.get(User, BOB))
            db.session.commit()
        return observed(s, ACME)


def exploit_moved_member(example: Example) -> Outcome:
    """Bob moves to Globex while his job waits; it still publishes in Acme."""
    with stage(example) as s:
        assert s.client("bob").post(f"/documents/{ACME}/publish").status_code == 202
        with s.app.app_context():
            db.session.get(User, BOB).organization_id = GLOBEX
            db.session.commit()
        return observed(s, ACME)


def legitimate_job(example: Example) -> None:
    """Bob has Acme's document published, once; Globex's he cannot even ask for."""
    with stage(example) as s:
        assert s.client("bob").post(f"/documents/{ACME}/publish").status_code == 202
        assert s.client("bob").post(f"/documents/{GLOBEX}/publish").status_code == 404
        assert s.results() == [None]
        assert state(s, ACME) == "published"


def legitimate_queue(example: Example) -> None:
    """Jobs of Bob and Mallory wait together while Alice leaves Acme; each publishes in its own organization."""
    with stage(example) as s:
        assert s.client("bob").post(f"/documents/{ACME}/publish").status_code == 202
        assert s.client("mallory").post(f"/documents/{GLOBEX}/publish").status_code == 202
        with s.app.app_context():
            db.session.get(User, ALICE).organization_id = None
            db.session.commit()
        assert s.results() == [None, None]
        assert (state(s, ACME), state(s, GLOBEX)) == ("published", "published")
