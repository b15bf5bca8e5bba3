"""Every transcript over HTTP and stdio, with servers as processes.

A sample is in the tier `process`, the rest in the tier `full`.
"""

import os

import pytest

from tests.conformance.conversations import CONVERSATIONS, TRANSCRIPTS
from tests.support.emitted import Noted
from tests.support.process import SERVE, HttpServer
from tests.support.tiers import sample
from tmkb.conformance import replay, targets
from tmkb.conformance.http import Http

TIERS = sample(CONVERSATIONS, 20, chosen=pytest.mark.process)


@pytest.fixture(scope="module")
def servers():
    """Return a function that starts a server with these arguments, or reuses it, and returns its URL."""
    running = {}

    def address(*arguments):
        if arguments not in running:
            running[arguments] = HttpServer(*arguments)
        return running[arguments].address

    yield address
    assert [each.end() for each in running.values()] == [0] * len(running)
    assert not [line for each in running.values() for line in each.log if "Traceback" in line or "[ERROR] HTTP" in line]


@pytest.mark.parametrize(("name", "revision"), TIERS, ids=str)
def test_conversation_over_stdio(monkeypatch, name, revision):
    for variable in [each for each in os.environ if each.startswith("COVERAGE")]:
        monkeypatch.delenv(variable)  # other tests cover the same code
    target = Noted(targets.Command([*SERVE, *TRANSCRIPTS[name].arguments]))
    results = list(replay.replay(TRANSCRIPTS[name], revision, target))

    assert [(result.number, result.differences) for result in results if result.differences] == []


@pytest.mark.parametrize(("name", "revision"), TIERS, ids=str)
def test_conversation_over_http(runtimes, servers, name, revision):
    each = TRANSCRIPTS[name]
    target = Noted(Http(servers(*each.arguments), runtimes(each.value["server"], each.config).spec))
    results = list(replay.replay(TRANSCRIPTS[name], revision, target))

    assert [(result.number, result.differences) for result in results if result.differences] == []
