"""The limits on streams and on the resources that a client follows."""

import copy
import json

import pytest

from tmkb.protocol import inbound, outbound
from tmkb.protocol.handlers import subscriptions
from tmkb.server.runtime import Runtime

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


@pytest.fixture
def listen(runtimes, quiet):
    """Open streams for these lists of URIs; return the message of the error for the last one, or None."""
    spec = copy.deepcopy(runtimes("everything").spec)
    spec["server"]["limits"] |= {"streams": 3, "subscriptions": 4, "uri_bytes": 8}
    runtime = Runtime(spec, runtimes("everything").provider, quiet(spec))
    connection = runtime.connect()

    def open_streams(*streams):
        for number, uris in enumerate(streams):
            params = {"notifications": {"resourceSubscriptions": uris}, "_meta": META}
            request = {"jsonrpc": "2.0", "id": number, "method": "subscriptions/listen", "params": params}
            (sent,) = runtime.handle(connection, json.dumps(request).encode())
        return json.loads(sent.message).get("error", {}).get("message")

    return open_streams


@pytest.mark.parametrize(
    ("streams", "error"),
    [
        ([[], [], []], None),
        ([[], [], [], []], "Too many streams at once. Limit: 3"),
        ([["a:1"], ["a:2", "a:3"], ["a:4"]], None),
        ([["a:1"], ["a:2", "a:3"], ["a:4", "a:5"]], "Too many subscriptions. Limit: 4"),
        ([["a:1", "a:2"], ["a:3", "a:4", "a:5"], ["a:3", "a:4"]], None),  # a refused stream counts for nothing
        ([["a:345678"]], None),
        (
            [["a:1", "a:34567\N{LATIN SMALL LETTER E WITH ACUTE}"]],
            "The URI of a subscription is too long. Limit: 8 bytes",
        ),
        ([["a:3456\ud800"]], "The URI of a subscription is too long. Limit: 8 bytes"),
    ],
)
def test_a_stream_beyond_a_limit_is_refused(listen, streams, error):
    assert listen(*streams) == error


def test_the_end_of_a_stream_names_it(runtimes):
    runtime = runtimes("everything")
    connection = runtime.connect()
    params = {"notifications": {}, "_meta": META}
    request = {"jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen", "params": params}
    runtime.handle(connection, json.dumps(request).encode())
    result, cancelled = (json.loads(effect.message) for effect in subscriptions.end(connection))
    meta = {"io.modelcontextprotocol/subscriptionId": "s"}

    assert (result["id"], result["result"]["_meta"].items() >= meta.items()) == ("s", True)
    assert cancelled["params"] == {"requestId": "s", "_meta": meta}
    assert subscriptions.end(connection) == []


def test_a_cancelled_stream_ends_with_a_line_in_the_log(runtimes):
    runtime = runtimes("everything")
    connection = runtime.connect()
    request = {
        "jsonrpc": "2.0",
        "id": "s",
        "method": "subscriptions/listen",
        "params": {"notifications": {}, "_meta": META},
    }
    runtime.handle(connection, json.dumps(request).encode())
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "s"}}

    assert inbound.receive(connection, json.dumps(cancelled).encode()) == [
        outbound.log_line(connection.spec, "cancelled", "s")
    ]
    assert not connection.listening


def test_the_end_of_a_subscription_frees_its_memory(runtimes):
    runtime = runtimes("everything")
    connection = runtime.connect()
    params = {"protocolVersion": "2025-11-25", "capabilities": {}}
    runtime.handle(
        connection, json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).encode()
    )
    runtime.handle(connection, b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def reserved_after(method):
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"uri": "test://template/a/data"}}
        runtime.handle(connection, json.dumps(request).encode())
        return connection.budget.reserved

    before, once, twice = (reserved_after(method) for method in ("ping", *["resources/subscribe"] * 2))

    assert before < once == twice
    assert reserved_after("resources/unsubscribe") == before
    assert reserved_after("resources/unsubscribe") == before
