"""Which revisions are read: only those that a client speaks, because each has to be parsed first."""

import json
from collections.abc import Mapping

import pytest

from tests.server.test_stateless import meta
from tmkb.schema import model
from tmkb.server.runtime import Runtime

NAMES = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2026-07-28"]


class Counting(Mapping):
    """Revisions, and how often each was looked up."""

    def __init__(self, revisions):
        self.revisions = revisions
        self.looked_up = []

    def __getitem__(self, name):
        self.looked_up.append(name)
        return self.revisions[name]

    def __iter__(self):
        return iter(self.revisions)

    def __len__(self):
        return len(self.revisions)


@pytest.fixture
def counted(runtimes, quiet):
    """A runtime of the server everything, and the revisions that it looks up."""
    found = runtimes("everything")
    spec = {**found.spec, "revisions": Counting(found.spec["revisions"])}
    return Runtime(spec, found.provider, quiet(spec)), spec["revisions"]


def send(runtime, connection, method, id_=None, **params):
    message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if id_ is None else {"id": id_})
    return runtime.handle(connection, json.dumps(message).encode())


def test_a_client_that_shakes_hands_has_only_its_revision_and_the_preferred_one_read(counted):
    runtime, revisions = counted
    connection = runtime.connect()
    assert set(revisions.looked_up) == {"2025-11-25"}

    send(runtime, connection, "initialize", 1, protocolVersion="2025-06-18", capabilities={})
    send(runtime, connection, "notifications/initialized")
    send(runtime, connection, "tools/list", 2)

    assert set(revisions.looked_up) == {"2025-11-25", "2025-06-18"}


def test_a_client_without_the_key_capabilities_declares_none(counted):
    runtime, _ = counted
    connection = runtime.connect()
    send(runtime, connection, "initialize", 1, protocolVersion="2025-06-18")
    send(runtime, connection, "notifications/initialized")
    sent = send(runtime, connection, "tools/call", 2, name="test_sampling", arguments={"prompt": "x"})
    while runtime.due() is not None:
        sent += runtime.work()

    assert [b"does not declare the capability sampling" in each.message for each in sent] == [True]


def test_a_request_that_describes_itself_has_only_its_revision_and_the_preferred_one_read(counted):
    runtime, revisions = counted
    send(runtime, runtime.connect({"mcp-protocol-version": "2026-07-28"}), "tools/list", 1, _meta=meta())

    assert set(revisions.looked_up) == {"2025-11-25", "2026-07-28"}


@pytest.mark.parametrize(
    ("names", "preferred", "stateless"),
    [
        (NAMES, "2025-11-25", ["2026-07-28"]),
        (["2026-07-28", "2024-11-05"], "2024-11-05", ["2026-07-28"]),
        (["2026-07-28"], "2026-07-28", ["2026-07-28"]),
    ],
)
def test_values_computed_from_the_served_revisions(runtimes, names, preferred, stateless):
    computed = model.negotiation(names, runtimes("everything").spec["revisions"])

    assert (computed["preferred"], computed["stateless"]) == (preferred, stateless)
    assert computed["version_params"] == ({"initialize": "protocolVersion"} if names != stateless else {})
