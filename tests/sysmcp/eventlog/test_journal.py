"""The journal of systemd, read from a file of 300 entries that needs no systemd to run."""

import base64
import json
import lzma
import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tiers import sample
from tests.sysmcp import logs
from tmkb.errors import ToolError
from tmkb.schema import paths

FIXTURE = os.path.join(paths.ROOT, "tests", "data", "sysmcp", "system.journal.xz")
MACHINE = "fedcba9876543210fedcba9876543210"
RANKS = ["VERBOSE", "INFORMATION", "WARNING", "ERROR", "CRITICAL"]
LOGS = {"System": {}, "Kernel": {"only": [0, 3]}, "Rest": {"except": [0, 3]}}


needs_library = pytest.mark.needs("libsystemd.so.0")


def served(path, **limits):
    return logs.served({"kind": "journal", "path": str(path), "logs": LOGS}, **limits)


@pytest.fixture(scope="module")
def content():
    with lzma.open(FIXTURE) as file:
        return file.read()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, content):
    """A folder like /var/log/journal."""
    folder = tmp_path_factory.mktemp("journal")
    (folder / MACHINE).mkdir()
    (folder / MACHINE / "system.journal").write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def provider(folder):
    return served(folder)


@pytest.fixture(scope="module")
def whole(provider):
    return logs.ask(provider, limit=1000, order="oldest")["entries"]


@needs_library
def test_an_entry(whole):
    assert whole[-1] == {
        "id": 300,
        "logName": "System",
        "level": "INFORMATION",
        "source": "systemd",
        "eventId": 0,
        "message": "systemd event number 299 failed to connect",
        "timestamp": "2023-11-14T22:20:44.319364Z",
    }
    assert [entry["id"] for entry in whole] == [*range(1, 301)]


@needs_library
def test_newest_first_is_oldest_first_reversed(provider, whole):
    assert logs.ask(provider, limit=1000)["entries"] == whole[::-1]


@needs_library
def test_a_file_is_read_as_its_folder_is(folder, whole):
    one = served(folder / MACHINE / "system.journal")

    assert logs.ask(one, limit=1000, order="oldest")["entries"] == whole


filters = st.fixed_dictionaries(
    {},
    optional={
        "minLevel": st.sampled_from(RANKS),
        "source": st.sampled_from(["CRON", "sshd", "Kernel", "cron.service", "none"]),
        "eventId": st.sampled_from([0, 7, [0, 7], [7]]),
        "text": st.sampled_from(["FAILED", "number 1", "no such", "10.0.0.5"]),
        "order": st.sampled_from(["newest", "oldest"]),
    },
)
places = st.one_of(st.none(), st.integers(0, 299))


@needs_library
@given(arguments=filters, start=places, end=places, limit=st.integers(1, 60), by=st.sampled_from(["cursor", "offset"]))
def test_pages_of_any_query_equal_a_plain_loop(provider, whole, arguments, start, end, limit, by):
    if start is not None:
        arguments["startTime"] = whole[start]["timestamp"]
    if end is not None:
        arguments["endTime"] = whole[max(end, start or 0)]["timestamp"]
    ids = arguments.get("eventId", 0)
    expected = [
        entry
        for entry in whole
        if RANKS.index(entry["level"]) >= RANKS.index(arguments.get("minLevel", "VERBOSE"))
        and arguments.get("source", entry["source"]).casefold() == entry["source"].casefold()
        and 0 in (ids if isinstance(ids, list) else [ids])
        and arguments.get("text", "").casefold() in entry["message"].casefold()
        and arguments.get("startTime", "0") <= entry["timestamp"] < arguments.get("endTime", "9")
    ]

    first = logs.ask(provider, limit=limit, **arguments)
    assert (first["totalCount"], first["totalExact"]) == (len(expected), True)
    assert ("nextCursor" in first, "nextOffset" in first) == (len(expected) > limit,) * 2
    found = logs.pages(provider, by=by, limit=limit, **arguments)
    assert found == (expected if arguments.get("order") == "oldest" else expected[::-1])


@needs_library
def test_entries_without_a_facility_are_in_no_log_of_facilities(provider):
    assert logs.ask(provider, "Kernel")["totalCount"] == 0
    assert logs.ask(provider, "Rest")["totalCount"] == 300


@needs_library
def test_cursors_are_short_enough_to_be_arguments(provider):
    answer = logs.ask(provider, limit=1, order="oldest")

    assert len(answer["nextCursor"]) <= 512


@needs_library
def test_a_listed_journal_has_size_and_range(provider, content):
    listed = {log["name"]: log for log in logs.run(provider.list_logs())["logs"]}

    assert listed["System"] == {
        "name": "System",
        "kind": "journal",
        "recordCount": 300,
        "sizeBytes": len(content),
        "oldest": "2023-11-14T22:13:22.388414Z",
        "newest": "2023-11-14T22:20:44.319364Z",
        "readable": True,
    }
    assert listed["Kernel"]["oldest"] is listed["Kernel"]["newest"] is None


@needs_library
@pytest.mark.parametrize("content", [b"", b"LPKSHHRH", b"junk" * 1000])
def test_an_invalid_journal_file_is_a_corrupt_source(tmp_path, content):
    (tmp_path / "system.journal").write_bytes(content)

    with pytest.raises(ToolError) as caught:
        logs.ask(served(tmp_path / "system.journal"))
    assert caught.value.error == "log_corrupt"


@pytest.mark.parametrize("folders", [[], ["empty"]])
def test_a_folder_without_journals_counts_as_missing(tmp_path, folders):
    for name in folders:
        (tmp_path / "journal" / name).mkdir(parents=True)
    provider = served(tmp_path / "journal")

    assert [log["reason"] for log in logs.run(provider.list_logs())["logs"]] == ["missing"] * 3
    with pytest.raises(ToolError) as caught:
        logs.ask(provider)
    assert (caught.value.error, caught.value.fields) == ("log_unavailable", {"log": "System", "why": "missing"})


def test_without_the_library_logs_are_listed_with_the_reason(folder, monkeypatch):
    monkeypatch.setattr("tmkb.sysmcp.eventlog.libsystemd._LIBRARY", "libsystemd.so.none")
    from tmkb.sysmcp.eventlog import libsystemd

    libsystemd._library.cache_clear()
    try:
        assert [log["reason"] for log in logs.run(served(folder).list_logs())["logs"]] == ["needs_libsystemd"] * 3
    finally:
        libsystemd._library.cache_clear()


@needs_library
@pytest.mark.parametrize("seed", sample(range(4), 4))
def test_no_mutation_of_a_journal_breaks_anything(tmp_path, content, seed):
    chance = random.Random(seed)
    used = len(content.rstrip(b"\0"))
    for _ in range(25):
        data = bytearray(content[: used + 4096])
        data.extend(bytes(len(content) - len(data)))
        for _ in range(chance.choice([1, 3, 30])):
            at = chance.randrange(chance.choice([272, 8192, used]))
            data[at] = chance.choice([0, 255, data[at] ^ 1 << chance.randrange(8)])
        if chance.random() < 0.2:
            del data[chance.randrange(used) :]
        path = tmp_path / "system.journal"
        path.write_bytes(data)
        for target in (path, tmp_path):
            provider = served(target, seconds=5)
            for arguments in ({}, {"minLevel": "ERROR"}, {"text": "failed", "order": "oldest"}, {"source": "cron"}):
                try:
                    answer = logs.ask(provider, limit=20, **arguments)
                    assert len(answer["entries"]) <= 20
                except ToolError as error:
                    assert error.error in ("log_corrupt", "timed_out")
            logs.run(provider.list_logs())
        path.unlink()


@needs_library
@pytest.mark.parametrize(
    ("order", "number", "ids"),
    [
        ("oldest", 0, [1, 2, 3]),  # what came next is gone as well: on with the oldest there is
        ("newest", 0, []),
        ("newest", 1000, [300, 299, 298]),
        ("oldest", 150, [150, 151, 152]),  # another has its number now
        ("newest", 150, [150, 149, 148]),
    ],
)
def test_a_cursor_continues_without_its_entry(provider, order, number, ids):
    answer = logs.ask(provider, order=order, limit=3)
    *state, place = json.loads(base64.urlsafe_b64decode(answer["nextCursor"] + "=="))
    place = ";".join(f"i={number:x}" if part.startswith("i=") else part for part in place.split(";"))
    cursor = base64.urlsafe_b64encode(json.dumps([*state, place]).encode()).decode().rstrip("=")

    assert [entry["id"] for entry in logs.ask(provider, order=order, limit=3, cursor=cursor)["entries"]] == ids


@needs_library
def test_entries_that_came_later_are_on_no_page_of_a_cursor(provider):
    """As if the first page had been read when there were 200 entries."""
    answer = logs.ask(provider, order="oldest", limit=150)
    mark, kind, before, _, (sequence, _), place = json.loads(base64.urlsafe_b64decode(answer["nextCursor"] + "=="))
    state = [mark, kind, before, None, [sequence, 200], place]
    cursor = base64.urlsafe_b64encode(json.dumps(state).encode()).decode().rstrip("=")

    answer = logs.ask(provider, order="oldest", limit=1000, cursor=cursor)

    assert [entry["id"] for entry in answer["entries"]] == [*range(151, 201)]
    assert (answer["totalCount"], answer["totalExact"]) == (200, True)
