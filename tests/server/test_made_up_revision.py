"""A revision that nobody has thought of yet is one file, and no Python."""

import pytest

from tests.support.process import Server

pytestmark = pytest.mark.process

REVISION = """
kind: revision
revision: "2099-01-01"
extends: "2025-11-25"
specification: https://example.com/2099-01-01
methods:
  ping: null
objects:
  call_result: {always: {resultType: complete}}
errors:
  unknown_tool: {code: -32001, message: "There is no tool {tool}"}
"""


@pytest.fixture
def server(overlay):
    folder = overlay(
        **{
            "protocol__2099-01-01": REVISION,
            "servers__everything__server": 'kind: server\nextends: packaged\nrevisions: ["2099-01-01", "2025-11-25"]\n',
        }
    )
    with Server("--schemas", folder, "--server", "everything") as server:
        yield server


def test_a_client_of_that_revision(server):
    assert server.handshake("2099-01-01")["protocolVersion"] == "2099-01-01"
    assert server.ask("ping")["error"]["message"] == "Method not found: ping"
    assert server.ask("tools/call", name="nope")["error"] == {"code": -32001, "message": "There is no tool nope"}
    assert server.ask("tools/call", name="test_simple_text")["result"] == {
        "content": [{"type": "text", "text": "This is a simple text response for testing."}],
        "isError": False,
        "resultType": "complete",
    }


def test_a_client_of_the_revision_before(server):
    assert server.handshake("2025-11-25")["protocolVersion"] == "2025-11-25"
    assert server.ask("ping")["result"] == {}
    assert server.ask("tools/call", name="nope")["error"] == {"code": -32602, "message": "Unknown tool: nope"}
    assert "resultType" not in server.ask("tools/call", name="test_simple_text")["result"]
