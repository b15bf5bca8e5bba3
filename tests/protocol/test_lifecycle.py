"""The table of states, read."""

import json

import pytest

from tmkb.errors import ProtocolError
from tmkb.protocol import inbound
from tmkb.schema import model
from tmkb.server.runtime import Runtime

TABLE = {
    "start": "a",
    "states": {
        "a": {"accepts": {"x": "b"}, "refuses": {"y": "no_y"}, "otherwise": "not_yet"},
        "b": {"accepts": {"*": "b"}, "refuses": {"x": "twice"}},
    },
}


def refusal(state, method):
    with pytest.raises(ProtocolError) as caught:
        inbound.next_state(TABLE, state, method)
    return caught.value.error


def test_an_accepted_method_changes_the_state():
    assert inbound.next_state(TABLE, "a", "x") == "b"
    assert inbound.next_state(TABLE, "b", "anything") == "b"


def test_a_method_with_its_own_refusal_gets_that_error():
    assert refusal("a", "y") == "no_y"
    assert refusal("b", "x") == "twice"


def test_the_rest_gets_otherwise():
    assert refusal("a", "z") == "not_yet"


def test_every_state_of_the_packaged_table_matches_the_contract(spec):
    table = spec["lifecycles"]["handshake"]

    assert table["events"] == {"end_of_input": "shutdown"}
    assert inbound.next_state(table, "not_initialized", "initialize") == "initializing"
    assert inbound.next_state(table, "initializing", "notifications/initialized") == "initialized"
    with pytest.raises(ProtocolError, match="shut_down"):
        inbound.next_state(table, "shutdown", "ping")


STATELESS = "2026-07-28"


def served(spec, *revisions):
    """The spec of a server with these revisions."""
    negotiation = model.negotiation(revisions, spec["revisions"])
    return {**spec, "server": {**spec["server"], "revisions": [*revisions]}, "negotiation": negotiation}


def test_the_end_of_input_changes_no_state_of_a_lifecycle_without_that_event(found, quiet):
    spec = served(found.spec, STATELESS)
    runtime = Runtime(spec, found.provider, quiet(spec))
    connection = runtime.connect()
    state = connection.state

    assert runtime.end(connection) == []
    assert connection.state == state


@pytest.mark.parametrize(("method", "params"), [("initialize", {"protocolVersion": "2025-06-18"}), ("ping", {})])
def test_a_server_of_stateless_revisions_alone_refuses_other_requests(found, quiet, method, params):
    spec = served(found.spec, STATELESS)
    runtime = Runtime(spec, found.provider, quiet(spec))
    line = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    (sent,) = runtime.handle(runtime.connect(), json.dumps(line).encode())

    assert json.loads(sent.message)["error"]["data"] == {"requested": "", "supported": [STATELESS]}


@pytest.mark.parametrize("ended", [False, True])
def test_a_reload_before_the_handshake(found, quiet, ended):
    """A new client begins with what is served now. A client that has closed its input stays in shutdown."""
    before, after = served(found.spec, STATELESS), served(found.spec, "2025-06-18")
    runtime = Runtime(after if ended else before, found.provider, quiet(before))
    connection = runtime.connect()
    if ended:
        runtime.end(connection)
    runtime.replace(before if ended else after, found.provider)
    initialize = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}

    assert connection.state == ("shutdown" if ended else "not_initialized")
    if not ended:
        (sent,) = runtime.handle(connection, json.dumps(initialize).encode())
        assert json.loads(sent.message)["result"]["protocolVersion"] == "2025-06-18"
