"""The operations of the provider of event logs: arguments, pages, limits, and logs that cannot be read."""

import base64
import json
import multiprocessing
import os
import sys

import jsonschema
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.sysmcp import evtxfile, logs
from tmkb.errors import ToolError
from tmkb.providers import registry
from tmkb.providers.operation import Progress
from tmkb.schema import paths, reader

pytestmark = pytest.mark.needs("evtx")

COUNT = 250


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    (folder / "System.evtx").write_bytes(evtxfile.file(evtxfile.chunks(evtxfile.events(COUNT), records=20)))
    (folder / "system.log").write_bytes(b"".join(b"2024-01-01T00:00:00Z h app: line %d\n" % n for n in range(COUNT)))
    return folder


@pytest.fixture(params=["evtx", "textlog"])
def source(request, folder):
    if request.param == "evtx":
        return {"kind": "evtx", "folder": str(folder)}
    return {"kind": "textlog", "files": {"System": str(folder / "system.log")}}


@pytest.fixture
def provider(source):
    return logs.served(source)


def refused(provider, log="System", **arguments):
    with pytest.raises(ToolError) as caught:
        logs.ask(provider, log, **arguments)
    return caught.value.error, caught.value.fields


def test_a_page(provider):
    answer = logs.ask(provider)

    assert [entry["id"] for entry in answer.pop("entries")] == list(range(COUNT, COUNT - 100, -1))
    assert answer.pop("nextCursor")
    assert answer == {
        **{"totalCount": COUNT, "totalExact": True, "page": 1, "pageSize": 100, "nextOffset": 100, "skippedCorrupt": 0}
    }


@pytest.mark.parametrize("name", ["source", "text"])
def test_lone_surrogates_are_rejected(provider, name):
    fields = {"path": f"arguments.{name}", "received": "a\ud800"}

    assert refused(provider, **{name: "a\ud800"}) == ("not_unicode", fields)


def test_the_last_page_has_no_next_one(provider):
    answer = logs.ask(provider, offset=200)

    assert (len(answer["entries"]), answer["page"], answer["totalCount"]) == (50, 3, COUNT)
    assert not {"nextOffset", "nextCursor", "truncated"} & set(answer)


def test_an_offset_past_the_end_is_an_empty_page(provider):
    answer = logs.ask(provider, offset=1000, limit=10)

    assert (answer["entries"], answer["totalCount"], answer["page"]) == ([], COUNT, 101)
    assert not {"nextOffset", "nextCursor", "truncated"} & set(answer)


def test_pages_by_cursor_are_numbered(provider):
    answer = logs.ask(provider, limit=100)
    numbers = [answer["page"]]
    while "nextCursor" in answer:
        answer = logs.ask(provider, limit=100, cursor=answer["nextCursor"])
        numbers.append(answer["page"])

    assert numbers == [1, 2, 3]


def test_integral_floats_are_integers(provider):
    assert len(logs.ask(provider, limit=10.0, offset=5.0)["entries"]) == 10


@pytest.mark.parametrize(
    ("arguments", "error", "fields"),
    [
        ({"limit": 10.5}, "not_whole", {"path": "arguments.limit", "received": 10.5}),
        ({"offset": 0.5}, "not_whole", {"path": "arguments.offset", "received": 0.5}),
        ({"startTime": "yesterday"}, "bad_time", {"path": "arguments.startTime", "received": "yesterday"}),
        ({"endTime": ""}, "bad_time", {"path": "arguments.endTime", "received": ""}),
        ({"endTime": "2024-02-30"}, "bad_time", {"path": "arguments.endTime", "received": "2024-02-30"}),
        (
            {"startTime": "0001-01-01T00:00:00+23:00"},
            "bad_time",
            {"path": "arguments.startTime", "received": "0001-01-01T00:00:00+23:00"},
        ),
        (
            {"startTime": "2024-01-02", "endTime": "2024-01-01"},
            "times_reversed",
            {"path": "arguments.endTime", "received": "2024-01-01"},
        ),
        ({"cursor": "junk"}, "bad_cursor", {"path": "arguments.cursor", "received": "junk"}),
    ],
)
def test_invalid_arguments(provider, arguments, error, fields):
    assert refused(provider, **arguments) == (error, fields)


@pytest.mark.parametrize(
    "text", ["2023-11-14T22:20:20Z", "2023-11-15T00:20:20+02:00", "2023-11-14T22:20:20", "20231114T222020Z"]
)
def test_times_that_name_no_zone_are_utc(folder, text):
    provider = logs.served({"kind": "evtx", "folder": str(folder)})

    assert logs.ask(provider, startTime=text, order="oldest", limit=1)["entries"][0]["id"] == 61


def test_the_end_is_excluded_and_the_start_is_not(folder):
    provider = logs.served({"kind": "evtx", "folder": str(folder)})

    def ids(**times):
        return [entry["id"] for entry in logs.ask(provider, order="oldest", **times)["entries"]]

    assert ids(startTime="2023-11-14T22:20:20Z", endTime="2023-11-14T22:20:34Z") == [61, 62]
    assert ids(startTime="2023-11-14T22:20:20Z", endTime="2023-11-14T22:20:20Z") == []


# Cursors


def test_a_cursor_is_of_one_query(provider):
    cursor = logs.ask(provider, limit=10)["nextCursor"]

    assert len(logs.ask(provider, limit=20, cursor=cursor)["entries"]) == 20  # a page may be of another size
    for other in ({"order": "oldest"}, {"text": "1"}, {"minLevel": "INFORMATION"}, {"startTime": "2001-01-01"}):
        assert refused(provider, cursor=cursor, **other)[0] == "bad_cursor"
    assert refused(provider, cursor=cursor, offset=10) == (
        "offset_beside_cursor",
        {"path": "arguments.offset", "received": 10},
    )
    assert len(logs.ask(provider, cursor=cursor, offset=0)["entries"]) == 100


def test_a_cursor_is_of_one_log(folder):
    text = {"kind": "textlog", "files": {"System": str(folder / "system.log"), "Other": str(folder / "system.log")}}
    provider = logs.served(text)
    cursor = logs.ask(provider, limit=10)["nextCursor"]

    assert refused(provider, "Other", cursor=cursor)[0] == "bad_cursor"
    assert refused(logs.served({"kind": "evtx", "folder": str(folder)}), cursor=cursor)[0] == "bad_cursor"


def packed(state):
    return base64.urlsafe_b64encode(json.dumps(state).encode()).decode().rstrip("=")


def unpacked(cursor):
    return json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["evtx", "textlog", "journal"]),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 6), value=values, more=st.integers(0, 6), other=values)
def test_no_cursor_breaks_anything(provider, place, value, more, other):
    state = unpacked(logs.ask(provider, limit=10)["nextCursor"])
    state[place : place + 1] = [value]
    state[more : more + 1] = [other]
    try:
        answer = logs.ask(provider, limit=10, cursor=packed(state))
    except ToolError as error:
        assert error.error == "bad_cursor"
    else:
        json.dumps(answer)


@given(cursor=st.text(max_size=512))
@example(cursor=base64.urlsafe_b64encode(b"[" * 100_000).decode())
@example(cursor=base64.urlsafe_b64encode(b"9" * 5000).decode())
def test_no_text_breaks_anything_as_a_cursor(cursor):
    provider = logs.served({"kind": "textlog", "files": {"System": os.devnull}})

    assert refused(provider, cursor=cursor)[0] == "bad_cursor"


# Limits


def test_a_page_ends_where_its_bytes_do(source):
    small = logs.served(source, result_bytes=3000)
    answer = logs.ask(small)

    assert len(json.dumps(answer["entries"], separators=(",", ":"))) <= 3000
    assert answer["truncated"] is True
    assert (answer["totalCount"], answer["nextOffset"]) == (COUNT, len(answer["entries"]))
    whole = logs.ask(logs.served(source), limit=1000)["entries"]
    assert logs.pages(small, by="cursor") == logs.pages(small, by="offset") == whole


def test_an_entry_longer_than_a_page_is_a_page(source):
    assert len(logs.pages(logs.served(source, result_bytes=1), limit=20)) == COUNT


def test_a_message_is_cut_between_characters(tmp_path):
    event = evtxfile.events(1)[0]._replace(values=("é" * 50,))
    (tmp_path / "System.evtx").write_bytes(evtxfile.file(evtxfile.chunks([event])))
    provider = logs.served({"kind": "evtx", "folder": str(tmp_path)}, event_text_bytes=20)

    (entry,) = logs.ask(provider)["entries"]

    assert (entry["message"], entry["messageTruncated"]) == ("param1=" + "é" * 6, True)


def test_without_time_to_count_the_total_is_a_lower_bound(source):
    provider = logs.served(source, counting_seconds=0)
    answer = logs.ask(provider, limit=10, text="1")

    assert answer["totalExact"] is False
    assert 10 <= answer["totalCount"] < COUNT
    whole = logs.ask(logs.served(source), limit=1000, text="1")["entries"]
    assert logs.pages(provider, by="cursor", limit=10, text="1") == whole
    assert logs.pages(provider, by="offset", limit=10, text="1") == whole


def test_a_total_gets_exact_with_time(folder):
    provider = logs.served({"kind": "evtx", "folder": str(folder)}, counting_seconds=0)
    counts = []
    for _ in range(20):
        answer = logs.ask(provider, limit=1, minLevel="WARNING")
        counts.append(answer["totalCount"])
        if answer["totalExact"]:
            break
    exact = logs.ask(logs.served({"kind": "evtx", "folder": str(folder)}), limit=1, minLevel="WARNING")["totalCount"]

    assert counts == sorted(counts)
    assert counts[-1] <= exact


def test_the_time_limit_ends_a_page_and_its_cursor_continues(source):
    provider = logs.served(source, seconds=1e-9)
    logs.run(provider.list_logs())  # so that the lines of a text are counted
    answer = logs.ask(provider, text="no such text")
    assert (answer["entries"], answer["totalExact"], answer["truncated"]) == ([], False, True)

    assert logs.pages(provider, text="no such text") == []
    found = logs.pages(provider, text="1", limit=100)
    assert found == logs.ask(logs.served(source), limit=1000, text="1")["entries"]


def test_a_page_beyond_the_time_limit_is_an_error(folder):
    provider = logs.served({"kind": "evtx", "folder": str(folder)}, seconds=1e-9)

    assert refused(provider, text="1", offset=200) == ("timed_out", {})


def test_a_query_runs_in_steps(folder):
    """Between two yields nothing takes longer than some chunks do: a query of a hundred chunks yields, however fast."""
    (folder / "Large.evtx").write_bytes(evtxfile.file(evtxfile.chunks(evtxfile.events(8000), records=20)))
    running = logs.served({"kind": "evtx", "folder": str(folder)}).query("Large", text="no such text")

    steps = [next(running) for _ in range(3)]
    running.close()

    assert all(isinstance(each, Progress) for each in steps)


def test_a_cancelled_query_closes_its_file(folder):
    provider = logs.served({"kind": "evtx", "folder": str(folder)})
    logs.ask(provider)
    before = sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else []
    running = provider.query("System", text="no such text", limit=1)
    next(running, None)
    running.close()

    assert before == (sorted(os.listdir("/proc/self/fd")) if before else [])


# Logs


def test_log_names_match_without_case_only(provider):
    assert logs.ask(provider, "SYSTEM", limit=1)["entries"][0]["id"] == COUNT
    for name in ("Nope", "../System", "System.evtx", "System\0", "/etc/passwd"):
        assert refused(provider, name) == ("log_not_found", {"log": name})


def test_no_sources_serve_nothing():
    provider = logs.served()

    assert logs.run(provider.list_logs()) == {"logs": []}
    assert refused(provider) == ("log_not_found", {"log": "System"})


def test_the_first_of_several_logs_that_can_be_read_is_served(folder, tmp_path):
    gone = {"kind": "textlog", "files": {"System": str(tmp_path / "gone"), "Else": str(tmp_path / "gone")}}
    text = {"kind": "textlog", "files": {"system": str(folder / "system.log")}}
    evtx = {"kind": "evtx", "folder": str(folder), "only": ["System"]}

    def kinds(*sources):
        return [
            (log["name"], log["kind"], log["readable"]) for log in logs.run(logs.served(*sources).list_logs())["logs"]
        ]

    assert kinds(gone, text, evtx) == [("system", "textlog", True), ("Else", "textlog", False)]
    assert kinds(gone, evtx, text) == [("System", "evtx", True), ("Else", "textlog", False)]
    assert logs.ask(logs.served(gone, text, evtx), limit=1)["entries"][0]["source"] == "app"
    assert len(logs.pages(logs.served(gone, evtx), limit=100)) == COUNT


def test_the_error_names_a_damaged_log_before_a_missing_one(tmp_path):
    (tmp_path / "System.evtx").write_bytes(b"junk")
    gone = {"kind": "textlog", "files": {"System": str(tmp_path / "gone")}}
    provider = logs.served(gone, {"kind": "evtx", "folder": str(tmp_path)})

    assert refused(provider) == ("log_corrupt", {"log": "System", "why": "corrupt"})
    assert logs.run(provider.list_logs())["logs"][0]["reason"] == "corrupt"


def test_the_logs_of_windows_are_passed_over_elsewhere():
    if sys.platform == "win32":
        pytest.skip("this is Windows")
    assert logs.run(logs.served({"kind": "wevtapi", "only": ["System"]}).list_logs()) == {"logs": []}


def as_nobody(source, results):
    provider = logs.served(source)  # nobody may not be allowed to import
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    listed = logs.run(provider.list_logs())["logs"]
    results.put(([(log["name"], log.get("reason")) for log in listed], refused(provider)))


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("kind", ["textlog", "evtx", "journal"])
def test_logs_without_permission(folder, kind):
    closed = folder / "closed"
    closed.mkdir(exist_ok=True)
    (closed / "System.evtx").write_bytes(b"")
    source = {
        "textlog": {"kind": "textlog", "files": {"System": str(closed / "system.log")}},
        "evtx": {"kind": "evtx", "folder": str(closed), "only": ["System"]},
        "journal": {"kind": "journal", "path": str(closed), "logs": {"System": {}}},
    }[kind]
    os.chmod(closed, 0o700)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=as_nobody, args=(source, results))
    process.start()
    try:
        listed, error = results.get(timeout=20)
    finally:
        process.join(60)

    assert listed == [("System", "denied")]
    assert error == ("log_denied", {"log": "System", "why": "denied"})


# Settings


def settings_schema():
    return reader.read(os.path.join(paths.SCHEMAS, "meta", "providers", "eventlog.yaml")).mapping()


@pytest.mark.parametrize(
    ("source", "good"),
    [
        ({"kind": "evtx", "folder": "logs"}, True),
        ({"kind": "evtx"}, False),
        ({"kind": "evtx", "folder": "logs", "files": {}}, False),
        ({"kind": "journal", "path": "/var/log/journal", "logs": {"System": {"only": [0, 3]}, "all": {}}}, True),
        ({"kind": "journal", "path": "/var/log/journal", "logs": {"System": {"only": [0], "except": [1]}}}, False),
        ({"kind": "textlog", "files": {"a": "b"}}, True),
        ({"kind": "wevtapi"}, True),
        ({"kind": "wevtapi", "only": []}, True),
        ({"kind": "registry"}, False),
    ],
)
def test_settings(source, good):
    schema = settings_schema()
    value = {"sources": [source], "limits": logs.LIMITS, "reasons": dict.fromkeys(logs.CAUSES, "…")}

    assert jsonschema.Draft202012Validator(schema).is_valid(value) is good


def test_it_is_a_provider(folder):
    settings = {"sources": [{"kind": "evtx", "folder": str(folder)}], "limits": logs.LIMITS, "reasons": {}}

    target = registry.installed()["eventlog"]
    provider = registry.load(target)
    assert provider.sources(settings) == []
    note = ["serves_logs", {"sources": f"evtx {folder}"}]
    assert provider.prepare(settings) == {"notes": [note]}
    provider = registry.open_provider(target, settings, lambda part: {})
    query = provider.operation("query", {"name": "eventlog_query"})
    assert logs.run(query(logName="System", limit=1))["totalCount"] == COUNT
    assert logs.run(provider.operation("list_logs", {"name": "eventlog_list_logs"})())["logs"]
