"""Addresses and their templates."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.protocol import requests as lives
from tmkb.protocol.effects import Log
from tmkb.protocol.handlers import resources
from tmkb.protocol.messages import Request
from tmkb.server.runtime import Runtime


@pytest.mark.parametrize(
    ("template", "uri", "variables"),
    [
        ("test://a/{id}/data", "test://a/12/data", {"id": "12"}),
        ("test://a/{id}/data", "test://a/1%2F2%20%C3%A4/data", {"id": "1/2 ä"}),
        ("test://a/{id}/data", "test://a/%FF/data", None),
        ("test://a/{id}/data", "test://a//data", None),
        ("test://a/{id}/data", "test://a/1/2/data", None),
        ("test://a/{id}/data", "test://a/1/data/more", None),
        ("test://a.b/{id}", "test://aXb/1", None),
        ("test://{kind}/{id}", "test://dogs/7", {"kind": "dogs", "id": "7"}),
        ("test://plain", "test://plain", {}),
    ],
)
def test_match(template, uri, variables):
    assert resources.match(template, uri) == variables


@given(st.text())
def test_any_text_is_matched_or_not(uri):
    assert resources.match("test://{id}", uri) in (None, {"id": uri[7:]}) or "%" in uri


def test_contents_that_are_not_there_are_no_resource(runtimes, quiet):
    spec = copy.deepcopy(runtimes("tmkb-full").spec)
    runtime = Runtime(spec, lambda name: Nothing(), quiet(spec))
    connection = runtime.connect()
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"uri": "tmkb://patterns/x", "_meta": meta}
    line = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params}
    (sent,) = runtime.handle(connection, json.dumps(line).encode())

    assert json.loads(sent.message)["error"] == {
        "code": -32602,
        "message": "Resource not found: tmkb://patterns/x",
        "data": {"uri": "tmkb://patterns/x"},
    }


def test_reading_a_resource_is_logged(runtimes):
    runtime = runtimes("everything")
    connection = runtime.connect()
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"uri": "test://static-text", "_meta": meta}
    exchange = lives.Exchange(
        connection, runtime.spec["revisions"]["2026-07-28"], Request(5, "resources/read", params), 5
    )
    resources.read_resource.begin(exchange)
    logged = resources.read_resource.complete(exchange, "text")[0]

    assert logged == Log(runtime.spec["server"]["log"]["read"], 5, {"uri": "test://static-text"})


class Nothing:
    """A provider that has nothing."""

    def operation(self, name, definition):
        return lambda **_: None
