"""The soak in short, and that it notices what it is there for."""

import pytest

from tests.soak import clients, run, stamped

pytestmark = [pytest.mark.full, pytest.mark.needs("watchfiles")]


@pytest.mark.parametrize(("over", "changes"), [("stdio", 25), ("http", 15)])
def test_every_answer_is_whole_and_of_one_state_of_the_files(over, changes):
    if over == "http":
        pytest.importorskip("uvicorn")
    report = run.soak(over, requests=500, changes=changes)

    assert sum(report["changes"].values()) >= changes
    assert set(report["requests"]) >= set(clients.KINDS)


@pytest.mark.parametrize(
    ("found", "since"),
    [({"tool": 1, "errors": 2}, 0), ({"tool": 1, "errors": 1}, 1), ({"tool": 2}, 0), ({"tool": 3, "errors": 2}, 0)],
    ids=["never so together", "older than what was seen", "a part is missing", "not there yet"],
)
def test_an_answer_that_is_of_no_state_is_noticed(found, since):
    history = stamped.History()
    for state in ({"tool": 1, "errors": 1}, {"tool": 2, "errors": 1}, {"tool": 2, "errors": 2}):
        history.add(state)

    with pytest.raises(AssertionError):
        history.explain(found, dict, since)


def test_an_answer_of_two_versions_is_noticed():
    with pytest.raises(AssertionError):
        stamped.stamps("tool=1 errors=2 tool=2")
