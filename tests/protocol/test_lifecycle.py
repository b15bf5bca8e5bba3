"""The table of states, read."""

import pytest

from tmkb.errors import ProtocolError
from tmkb.protocol import inbound

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
