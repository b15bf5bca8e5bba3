"""Lists in pages, and cursors that somebody has tampered with."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.errors import ProtocolError
from tmkb.protocol.handlers import listing
from tmkb.server.runtime import Runtime


def pages(scope, count, size):
    """(start, end) of every page, following the cursors."""
    start, end, cursor = listing.page(scope, count, size, None)
    found = [(start, end)]
    while cursor is not None:
        start, end, cursor = listing.page(scope, count, size, cursor)
        found.append((start, end))
    return found


@given(st.integers(0, 200), st.integers(1, 50))
def test_pages_hold_everything_once_and_in_order(count, size):
    listed = [number for start, end in pages("things/list", count, size) for number in range(start, end)]

    assert listed == list(range(count))


@pytest.mark.parametrize("size", [1, 10])
def test_a_cursor_behind_the_last_entry_is_refused(size):
    _, _, cursor = listing.page("things/list", 2 * size, size, None)

    assert listing.page("things/list", size + 1, size, cursor) == (size, size + 1, None)
    with pytest.raises(ProtocolError, match="unknown_cursor"):
        listing.page("things/list", size, size, cursor)


def test_a_client_follows_the_cursors(runtimes, quiet):
    spec = copy.deepcopy(runtimes("everything").spec)
    names = list(spec["tools"])
    spec["server"]["limits"]["page_size"] = 5
    runtime = Runtime(spec, runtimes("everything").provider, quiet(spec))
    connection, params, listed = runtime.connect(), {}, []

    def ask(method, params):
        line = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return [json.loads(each.message)["result"] for each in runtime.handle(connection, json.dumps(line).encode())]

    ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
    runtime.handle(connection, b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
    while params is not None:
        (page,) = ask("tools/list", params)
        assert 1 <= len(page["tools"]) <= 5
        listed += [tool["name"] for tool in page["tools"]]
        params = {"cursor": page["nextCursor"]} if "nextCursor" in page else None

    assert listed == names and len(names) > 10


def test_without_a_size_there_is_one_page():
    assert listing.page("things/list", 7, None, None) == (0, 7, None)
    assert listing.page("things/list", 0, None, None) == (0, 0, None)


@given(st.one_of(st.text(), st.integers(), st.none(), st.booleans(), st.lists(st.text()), st.binary().map(str)))
def test_an_unknown_cursor_is_refused(cursor):
    if cursor is not None:
        with pytest.raises(ProtocolError, match="unknown_cursor"):
            listing.page("things/list", 100, 10, cursor)


@given(st.integers(0, 500), st.characters(min_codepoint=33, max_codepoint=126))
def test_a_changed_cursor_is_refused(at, character):
    _, _, cursor = listing.page("things/list", 100, 10, None)
    at %= len(cursor)
    changed = cursor[:at] + character + cursor[at + 1 :]
    if changed != cursor:
        with pytest.raises(ProtocolError):
            listing.page("things/list", 100, 10, changed)


def test_a_cursor_is_good_for_its_list_only():
    _, _, cursor = listing.page("things/list", 100, 10, None)

    with pytest.raises(ProtocolError):
        listing.page("others/list", 100, 10, cursor)
    with pytest.raises(ProtocolError):
        listing.page("things/list", 5, 10, cursor)  # the list has become shorter
    with pytest.raises(ProtocolError):
        listing.page("things/list", 100, 7, cursor)
