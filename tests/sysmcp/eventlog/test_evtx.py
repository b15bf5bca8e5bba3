"""Folders of .evtx files: whole, paged, filtered, growing, and damaged."""

import json
import os
import random
import shutil
import struct
import zlib
from datetime import UTC, datetime

import evtx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.tiers import sample
from tests.sysmcp import evtxfile, logs
from tmkb.errors import ToolError
from tmkb.schema import paths
from tmkb.sysmcp.eventlog import chunks as chunks_of

pytestmark = pytest.mark.needs("evtx")

FIXTURE = os.path.join(paths.CONFORMANCE, "sysmcp", "fixtures", "System.evtx")
EVENTS = evtxfile.events(2000)
RANKS = ["VERBOSE", "INFORMATION", "WARNING", "ERROR", "CRITICAL"]
LEVELS = {1: "CRITICAL", 2: "ERROR", 3: "WARNING", 5: "VERBOSE"}
BEGIN, STEP = EVENTS[0].time, EVENTS[1].time - EVENTS[0].time
quick = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def put(folder, found, name="System"):
    """Replace the file of a log, with an old modification time, because chunks of recent files are not cached."""
    path = folder / f"{name}.evtx"
    path.write_bytes(found)
    put.time += 1
    os.utime(path, (put.time, put.time))
    return path


put.time = 1_000_000_000


def served(folder, **limits):
    return logs.served({"kind": "evtx", "folder": str(folder)}, **limits)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A ring log: its newest chunks stand before its oldest."""
    folder = tmp_path_factory.mktemp("evtx")
    chunks = evtxfile.chunks(EVENTS, records=150)
    put(folder, evtxfile.file(chunks[5:] + chunks[:5]))
    shutil.copy(FIXTURE, folder / "Small.evtx")
    return folder


@pytest.fixture(scope="module")
def provider(folder):
    return served(folder)


def whole(provider, log="System", **arguments):
    return logs.ask(provider, log, limit=10000, **arguments)["entries"]


@pytest.mark.parametrize("log", ["System", "Small"])
def test_entries_are_those_that_the_library_reads_by_itself(provider, folder, log):
    expected = []
    for record in evtx.PyEvtxParser(str(folder / f"{log}.evtx"), validate_checksums=True).records_json():
        event = json.loads(record["data"])["Event"]
        system = event["System"]
        values = event["EventData"]
        expected.append(
            {
                "id": record["event_record_id"],
                "logName": system["Channel"],
                "level": LEVELS.get(int(system["Level"]), "INFORMATION"),
                "source": system["Provider"]["#attributes"]["Name"],
                "eventId": int(system["EventID"]),
                "message": "; ".join(f"{name}={value}" for name, value in values.items()),
                "timestamp": record["timestamp"].removesuffix(" UTC"),
                "messageRendered": False,
            }
        )

    assert whole(provider, log, order="oldest") == sorted(expected, key=lambda entry: entry["id"])


def test_an_entry_has_the_keys_in_their_order(provider):
    entry = logs.ask(provider, limit=1)["entries"][0]

    assert list(entry)[:7] == ["id", "logName", "level", "source", "eventId", "message", "timestamp"]
    assert (entry["id"], entry["message"]) == (2000, "param1=value 1999; param2=Ünï 日本 <&>")


times = st.one_of(st.none(), st.integers(-5, 2005).map(lambda n: BEGIN + n * STEP))
filters = st.fixed_dictionaries(
    {},
    optional={
        "minLevel": st.sampled_from(RANKS),
        "source": st.sampled_from(["KERNEL", "eventlog", 'a "b" & <C>', "none"]),
        "eventId": st.one_of(st.sampled_from([41, 7, 999]), st.lists(st.sampled_from([41, 7, 6005, 999]), min_size=1)),
        "text": st.sampled_from(["value 7", "VALUE 12", "日本 <&", "; param2", "=Ü", "no such", " "]),
        "order": st.sampled_from(["newest", "oldest"]),
    },
)


def iso(time):
    return datetime.fromtimestamp(time / 1_000_000, UTC).isoformat()


def expected(arguments, start, end):
    """Return the ids that a plain loop finds."""
    ids = arguments.get("eventId", [event.event_id for event in EVENTS])
    found = []
    for number, event in enumerate(EVENTS, 1):
        message = f"param1={event.values[0]}; param2={event.values[1]}"
        if (
            RANKS.index(LEVELS.get(event.level, "INFORMATION")) >= RANKS.index(arguments.get("minLevel", "VERBOSE"))
            and event.source.casefold() == arguments.get("source", event.source).casefold()
            and event.event_id in (ids if isinstance(ids, list) else [ids])
            and arguments.get("text", "").casefold() in message.casefold()
            and (start is None or event.time >= start)
            and (end is None or event.time < end)
        ):
            found.append(number)
    return found if arguments.get("order") == "oldest" else found[::-1]


@quick
@given(arguments=filters, start=times, end=times, limit=st.integers(1, 400), by=st.sampled_from(["cursor", "offset"]))
def test_pages_of_any_query_equal_a_plain_loop(provider, folder, arguments, start, end, limit, by):
    if start is not None and end is not None and start > end:
        start, end = end, start
    numbers = expected(arguments, start, end)
    if start is not None:
        arguments["startTime"] = iso(start)
    if end is not None:
        arguments["endTime"] = iso(end)

    for each in (provider, served(folder)):  # with what earlier queries left behind, and without
        first = logs.ask(each, limit=limit, **arguments)
        assert (first["totalCount"], first["totalExact"]) == (len(numbers), True)
        assert ("nextOffset" in first, "nextCursor" in first) == (len(numbers) > limit,) * 2
        assert [entry["id"] for entry in logs.pages(each, by=by, limit=max(limit, 90), **arguments)] == numbers


def test_pages_by_cursor_do_not_shift_when_the_log_grows(tmp_path):
    chunks = evtxfile.chunks(evtxfile.events(3000), records=100)
    for order in ("newest", "oldest"):
        put(tmp_path, evtxfile.file(chunks[:10]))
        provider = served(tmp_path)
        answer = logs.ask(provider, limit=70, order=order, minLevel="WARNING")
        entries = answer["entries"]
        for grown in range(11, 30):
            if "nextCursor" not in answer:
                break
            put(tmp_path, evtxfile.file(chunks[:grown]))
            answer = logs.ask(provider, limit=70, order=order, minLevel="WARNING", cursor=answer["nextCursor"])
            entries += answer["entries"]
        else:
            raise AssertionError("no end")

        put(tmp_path, evtxfile.file(chunks[:10]))
        assert entries == logs.ask(served(tmp_path), limit=10000, order=order, minLevel="WARNING")["entries"]


def test_a_cursor_continues_after_the_ring_log_overwrote_its_next_record(tmp_path):
    chunks = evtxfile.chunks(evtxfile.events(1000), records=100)
    put(tmp_path, evtxfile.file(chunks[:8]))
    provider = served(tmp_path)
    cursor = logs.ask(provider, limit=50, order="oldest")["nextCursor"]
    put(tmp_path, evtxfile.file(chunks[8:] + chunks[2:8]))  # the first two chunks are gone

    answer = logs.ask(provider, limit=1000, order="oldest", cursor=cursor)

    assert [entry["id"] for entry in answer["entries"]] == list(range(201, 801))
    assert "nextCursor" not in answer


def test_only_changed_chunks_are_read_again(tmp_path, monkeypatch):
    read = []
    records = chunks_of.records
    monkeypatch.setattr(chunks_of, "records", lambda file, chunk: read.append(chunk.first) or records(file, chunk))
    chunks = evtxfile.chunks(evtxfile.events(450), records=100)
    put(tmp_path, evtxfile.file(chunks))
    provider = served(tmp_path)
    logs.ask(provider, limit=1, text="no such text")
    assert sorted(read) == [1, 101, 201, 301, 401]

    read.clear()
    put(tmp_path, evtxfile.file(evtxfile.chunks(evtxfile.events(480), records=100)))
    answer = logs.ask(provider, limit=1, minLevel="CRITICAL", order="oldest")

    assert (answer["totalCount"], answer["totalExact"]) == (
        len([1 for e in evtxfile.events(480) if e.level == 1]),
        True,
    )
    assert sorted(read) == [1, 401]  # the page, and what is new


def test_columns_are_kept_up_to_the_limit(tmp_path):
    put(tmp_path, evtxfile.file(evtxfile.chunks(evtxfile.events(450), records=100)))
    provider = served(tmp_path, indexed_records=250)
    for _ in range(2):
        assert logs.ask(provider, minLevel="CRITICAL")["totalCount"] == 34

    (file,) = provider.log_sources[0].files.values()
    assert sum(len(columns.ids) for columns in file.columns.values()) == 250
    os.unlink(file.path)
    assert logs.run(provider.list_logs()) == {"logs": []}
    assert provider.log_sources[0].room == 250  # for others


def test_names_of_files_become_names_of_logs(tmp_path):
    one = evtxfile.file(evtxfile.chunks(EVENTS[:3], channel="X/Operational"))
    put(tmp_path, one, "Microsoft-Windows-X%4Operational")
    put(tmp_path, b"ElfFile\0", "Empty")
    (tmp_path / "other.txt").write_bytes(one)
    os.mkfifo(tmp_path / "Pipe.evtx")
    (tmp_path / "Folder.evtx").mkdir()
    (tmp_path / "Link.evtx").symlink_to(tmp_path / "other.txt")
    with open(os.fsencode(tmp_path) + b"/\xff.evtx", "wb") as file:
        file.write(one)
    provider = served(tmp_path)

    listed = {log["name"]: log for log in logs.run(provider.list_logs())["logs"]}
    assert list(listed) == ["Empty", "Folder", "Link", "Microsoft-Windows-X/Operational", "Pipe", "\ufffd"]
    assert listed["Empty"] == {
        **{"name": "Empty", "kind": "evtx", "recordCount": 0, "sizeBytes": 8},
        **{"oldest": None, "newest": None, "readable": True},
    }
    assert listed["Microsoft-Windows-X/Operational"]["newest"] == "2023-11-14T22:13:34Z"
    assert [listed[name]["reason"] for name in ("Folder", "Link", "Pipe")] == ["missing", "missing", "missing"]
    assert logs.ask(provider, "microsoft-windows-x/OPERATIONAL")["totalCount"] == 3


def test_a_huge_sparse_file_is_scanned_in_steps_within_the_time_limit(tmp_path):
    put(tmp_path, evtxfile.file(evtxfile.chunks(EVENTS[:3])), "Sparse")
    os.truncate(tmp_path / "Sparse.evtx", 1 << 36)
    provider = logs.served({"kind": "evtx", "folder": str(tmp_path)}, seconds=0.05, counting_seconds=0)
    running = provider.list_logs()

    steps = [next(running) for _ in range(3)]
    (listed,) = logs.run(running)["logs"]
    assert len(steps) == 3
    assert (listed["readable"], listed["sizeBytes"], listed["recordCount"]) == (True, None, None)


def test_only_named_logs_are_served(folder):
    def names(**setting):
        provider = logs.served({"kind": "evtx", "folder": str(folder), **setting})
        return [log["name"] for log in logs.run(provider.list_logs())["logs"]]

    assert (names(), names(only=["Small"]), names(only=[])) == (["Small", "System"], ["Small"], [])


def test_a_folder_that_is_not_there_has_the_logs_that_are_named(tmp_path):
    setting = {"kind": "evtx", "folder": str(tmp_path / "gone")}

    def listed(**only):
        found = logs.run(logs.served({**setting, **only}).list_logs())["logs"]
        return [(log["name"], log["readable"], log["reason"]) for log in found]

    assert listed() == [("*", False, "missing")]
    assert listed(only=["System"]) == [("System", False, "missing")]
    assert listed(only=[]) == []


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_a_scan_continues_inside_a_chunk(provider, folder, order):
    hurried = served(folder, seconds=1e-9)

    for query in ({}, {"text": "value 1"}, {"minLevel": "WARNING"}):
        whole = logs.ask(provider, limit=10000, order=order, **query)["entries"]
        assert logs.pages(hurried, limit=10000, order=order, **query) == whole


# Damage


def damaged(tmp_path, change, count=300):
    """The ids that are read of a file of `count` records in chunks of 100 after ``change`` of its bytes."""
    data = bytearray(evtxfile.file(evtxfile.chunks(evtxfile.events(count), records=100)))
    data = change(data) or data
    put(tmp_path, bytes(data))
    answer = logs.ask(served(tmp_path), limit=1000, order="oldest")
    return [entry["id"] for entry in answer["entries"]], answer["skippedCorrupt"], answer["totalCount"]


def record(data, number):
    """Where the record begins that has this place in the first chunk."""
    at = 4096 + 512
    for _ in range(number):
        (size,) = struct.unpack_from("<I", data, at + 4)
        at += size
    return at


def test_a_damaged_record_is_counted_and_skipped(tmp_path):
    def change(data):
        at = record(data, 50)
        data[at + 24 : at + 60] = b"\xff" * 36

    ids, corrupt, total = damaged(tmp_path, change)

    assert (corrupt, total) == (1, 299)
    assert ids == [number for number in range(1, 301) if number != 51]


def test_a_chunk_without_its_mark_is_counted(tmp_path):
    def change(data):
        data[4096 + 65536 : 4096 + 65536 + 4] = b"junk"

    assert damaged(tmp_path, change) == ([*range(1, 101), *range(201, 301)], 1, 200)


def test_unused_chunks_are_not_damaged(tmp_path):
    ids, corrupt, _ = damaged(tmp_path, lambda data: data + bytes(3 * 65536))

    assert (len(ids), corrupt) == (300, 0)


def test_of_a_chunk_that_was_cut_off_the_beginning_is_read(tmp_path):
    ids, corrupt, total = damaged(tmp_path, lambda data: data[: 4096 + 2 * 65536 + 512 + 8000])

    assert ids == list(range(1, total + 1))
    assert 200 < total < 300
    assert corrupt == 300 - total


@pytest.mark.parametrize("content", [b"", b"ElfFil", b"junk" * 30000, b"\0" * 70000, b"regf" + bytes(70000)])
def test_an_invalid_evtx_file_is_a_corrupt_source(tmp_path, content):
    put(tmp_path, content)

    with pytest.raises(ToolError) as caught:
        logs.ask(served(tmp_path))
    assert (caught.value.error, caught.value.fields) == ("log_corrupt", {"log": "System", "why": "corrupt"})


def answers(provider, **arguments):
    """Query, and check the page; a damaged log is the only permitted error."""
    try:
        answer = logs.ask(provider, **arguments)
    except ToolError as error:
        assert error.error == "log_corrupt"
        return None
    assert len(answer["entries"]) <= answer["pageSize"]
    json.dumps(answer).encode("ascii")
    return answer


def mutated(data, chance):
    """Some bytes changed, some doubled, or the end cut off."""
    data = bytearray(data)
    for _ in range(chance.choice([1, 3, 30])):
        at = chance.randrange(chance.choice([600, 5200, len(data)]))
        data[at] = chance.choice([0, 255, data[at] ^ 1 << chance.randrange(8), chance.randrange(256)])
    if chance.random() < 0.3:
        at = chance.randrange(len(data))
        data[at : at + 8] = chance.randbytes(8)
    if chance.random() < 0.2:
        del data[chance.randrange(len(data)) :]
    return bytes(data)


@pytest.mark.parametrize("seed", sample(range(6), 6))
def test_no_mutation_of_a_file_breaks_anything(tmp_path, seed):
    chance = random.Random(seed)
    base = evtxfile.file(evtxfile.chunks(evtxfile.events(120), records=60))
    with open(FIXTURE, "rb") as file:
        bases = [base, file.read()]
    for _ in range(50):
        put(tmp_path, mutated(chance.choice(bases), chance))
        provider = served(tmp_path)
        answers(provider, limit=5)
        answers(provider, limit=50, minLevel="ERROR")
        answers(provider, limit=50, text="value 1", order="oldest")
        answers(provider, startTime="2023-11-14T22:13:41Z")
        logs.run(provider.list_logs())


@quick
@given(head=st.binary(max_size=200), body=st.binary(max_size=2000))
def test_no_content_of_a_chunk_breaks_anything(tmp_path, head, body):
    begun = evtxfile.chunks(EVENTS[:2])[0]
    chunk = (begun[:8] + head).ljust(512, b"\0") + begun[512:700] + body
    put(tmp_path, evtxfile.file([chunk.ljust(65536, b"\0")]))

    answers(served(tmp_path), limit=5)
    answers(served(tmp_path), limit=5, source="kernel")


@pytest.mark.parametrize("length", [2, 3])
def test_a_chunk_with_a_circular_list_of_names_is_damaged(tmp_path, length):
    """The library would follow the list forever."""
    damaged, whole = evtxfile.chunks(EVENTS[:20], records=10)
    places = [60_000 + 8 * number for number in range(length)]
    changed = bytearray(damaged)
    for at, place in zip([128 + 4 * 20, *places], [*places, places[0]], strict=True):
        struct.pack_into("<I", changed, at, place)
    struct.pack_into("<I", changed, 124, zlib.crc32(bytes(changed[:120] + changed[128:512])))
    put(tmp_path, evtxfile.file([bytes(changed), whole]))

    answer = logs.ask(served(tmp_path), order="oldest")

    assert ([entry["id"] for entry in answer["entries"]], answer["skippedCorrupt"]) == ([*range(11, 21)], 10)


def test_a_panic_of_the_library_is_a_damaged_chunk(tmp_path, monkeypatch):
    class PanicException(BaseException):
        pass

    def panic(*_, **__):
        raise PanicException

    put(tmp_path, evtxfile.file(evtxfile.chunks(EVENTS[:10])))
    monkeypatch.setattr(evtx, "PyEvtxParser", panic)

    answer = logs.ask(served(tmp_path))

    assert (answer["entries"], answer["skippedCorrupt"]) == ([], 10)


def test_without_the_library_logs_are_listed_with_the_reason(tmp_path, monkeypatch):
    put(tmp_path, evtxfile.file(evtxfile.chunks(EVENTS[:10])))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    provider = served(tmp_path)

    (log,) = logs.run(provider.list_logs())["logs"]
    assert (log["readable"], log["reason"]) == (False, "needs_evtx")
    with pytest.raises(ToolError) as caught:
        logs.ask(provider)
    assert (caught.value.error, caught.value.fields) == ("log_unavailable", {"log": "System", "why": "needs_evtx"})


def test_real_files_are_read_as_the_library_reads_them():
    """SYSMCP_REAL_EVTX names a folder of files from real machines, which are not in the repository."""
    folder = os.environ.get("SYSMCP_REAL_EVTX")
    if not folder:
        pytest.skip("SYSMCP_REAL_EVTX names no folder")
    provider = logs.served({"kind": "evtx", "folder": folder})
    for log in logs.run(provider.list_logs())["logs"]:
        entries = logs.pages(provider, log["name"], order="oldest", limit=5000)
        path = os.path.join(folder, log["name"].replace("/", "%4") + ".evtx")
        ids = [record["event_record_id"] for record in evtx.PyEvtxParser(path, skip_errors=True).records()]
        assert [entry["id"] for entry in entries] == sorted(ids)
