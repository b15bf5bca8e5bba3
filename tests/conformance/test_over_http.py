"""Every exchange of every transcript over HTTP: the same answers as on stdio."""

import pytest

from tests.conformance.test_in_process import CONVERSATIONS, TRANSCRIPTS
from tests.support.emitted import Noted
from tests.support.process import HttpServer
from tmkb.conformance import replay
from tmkb.conformance.http import Http


@pytest.fixture(scope="module")
def servers():
    """The address of a server with these arguments."""
    running = {}

    def address(*arguments):
        if arguments not in running:
            running[arguments] = HttpServer(*arguments)
        return running[arguments].address

    yield address
    assert [each.end() for each in running.values()] == [0] * len(running)
    assert not [line for each in running.values() for line in each.log if "Traceback" in line or "[ERROR] HTTP" in line]


@pytest.mark.parametrize(("name", "revision"), CONVERSATIONS, ids=str)
def test_the_same_over_http(runtimes, servers, name, revision):
    each = TRANSCRIPTS[name]
    target = Noted(Http(servers(*each.arguments), runtimes(each.value["server"], each.config).spec))
    results = list(replay.replay(TRANSCRIPTS[name], revision, target))

    assert [(result.number, result.differences) for result in results if result.differences] == []
