"""Logs that are texts: their lines from either end, their stamps, and files that change."""

import os
import time
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sysmcp import logs
from tmkb.errors import ToolError
from tmkb.sysmcp.eventlog import textlog
from tmkb.sysmcp.eventlog.logquery import LogPage, LogQuery

quick = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def zone(monkeypatch):
    """Two hours ahead of UTC in winter, three in summer."""
    monkeypatch.setenv("TZ", "EET-2EEST,M3.5.0/3,M10.5.0/4")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "system.log"

    def put(content, modified=None):
        path.write_bytes(content)
        if modified:
            stamp = datetime.fromisoformat(modified).timestamp()
            os.utime(path, (stamp, stamp))
        return logs.served({"kind": "textlog", "files": {"System": str(path)}})

    put.path = path
    return put


def test_a_block_is_scanned_in_steps_without_duplicates(log, monkeypatch):
    provider = log(b"".join(b"%d\n" % number for number in range(300)))
    monkeypatch.setattr(textlog, "_STEP", 7)
    (text,) = provider.log_sources[0].logs()
    scan = text.scan(LogQuery(text="x"), LogPage(0, 10, 1 << 20, 4096))

    assert len([*scan]) > 300 // 7
    hurried = logs.served({"kind": "textlog", "files": {"System": str(log.path)}}, seconds=1e-9)
    logs.run(hurried.list_logs())  # so that lines are counted
    assert [entry["message"] for entry in logs.pages(hurried, text="1")] == [
        str(number) for number in reversed(range(300)) if "1" in str(number)
    ]


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="a system without such links")
def test_a_link_is_not_read_as_a_log(log, tmp_path):
    log(b"secret\n")
    os.symlink(log.path, tmp_path / "link.log")
    provider = logs.served({"kind": "textlog", "files": {"System": str(tmp_path / "link.log")}})

    with pytest.raises(ToolError) as refused:
        logs.ask(provider)
    assert refused.value.error == "log_unavailable"


def entries(provider, **arguments):
    return logs.ask(provider, limit=10000, **arguments)["entries"]


lines = st.lists(st.one_of(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), st.just(b"")), max_size=40)


@quick
@given(
    lines=lines,
    ends=st.booleans(),
    block=st.integers(1, 40),
    limit=st.integers(1, 12),
    by=st.sampled_from(["cursor", "offset"]),
)
def test_lines_are_the_same_from_either_end_and_in_pages(log, monkeypatch, lines, ends, block, limit, by):
    monkeypatch.setattr(textlog, "_BLOCK", block)
    content = b"\n".join(lines) + b"\n" * (ends and bool(lines))
    provider = log(content)
    split = content.split(b"\n")
    expected = [line.decode("utf-8", "replace").rstrip("\r") for line in (split[:-1] if split[-1] == b"" else split)]

    oldest = entries(provider, order="oldest")
    assert [entry["message"] for entry in oldest] == expected
    assert [entry["id"] for entry in oldest] == [*range(1, len(expected) + 1)]
    assert entries(provider) == oldest[::-1]
    for order, whole in (("oldest", oldest), ("newest", oldest[::-1])):
        answer = logs.ask(provider, order=order, limit=limit)
        assert (answer["totalCount"], answer["totalExact"]) == (len(whole), True)
        assert logs.pages(provider, by=by, order=order, limit=limit) == whole


def test_an_entry_of_syslog(log, zone):
    provider = log(b"<11>Feb  3 04:05:06 host sshd[123]: Failed: password for root\n", "2024-03-01T00:00:00")

    assert entries(provider) == [
        {
            "id": 1,
            "logName": "System",
            "level": "ERROR",
            "source": "sshd",
            "eventId": 0,
            "message": "Failed: password for root",
            "timestamp": "2024-02-03T02:05:06Z",
        }
    ]


@pytest.mark.parametrize(
    ("line", "stamp", "source", "message"),
    [
        ("2024-07-01T10:00:00.5+02:00 host cron[1]: (root) CMD", "2024-07-01T08:00:00.500000Z", "cron", "(root) CMD"),
        ("2024-07-01T10:00:00Z host kernel: up", "2024-07-01T10:00:00Z", "kernel", "up"),
        (
            "2024-07-01 10:00:00 status installed a:amd64 1",
            "2024-07-01T07:00:00Z",
            "System",
            "status installed a:amd64 1",
        ),
        ("2024-07-01 10:00:00,250 upgrade", "2024-07-01T07:00:00.250000Z", "System", "upgrade"),
        ("Jul  1 10:00:00 host app: x", "2024-07-01T07:00:00Z", "app", "x"),
        ("Dec 31 23:00:00 host app: last year", "2023-12-31T21:00:00Z", "app", "last year"),
        ("Jul 11 10:00:00 host app: tomorrow is this year", "2024-07-11T07:00:00Z", "app", "tomorrow is this year"),
        ("Jul 12 11:00:00 host app: after that is not", "2023-07-12T08:00:00Z", "app", "after that is not"),
        ("Feb 29 10:00:00 host app: leap", "2024-02-29T08:00:00Z", "app", "leap"),
        ("Feb 30 10:00:00 host app: never", None, "app", "never"),
        ("Abc  1 10:00:00 host app: no month", None, "app", "no month"),
        ("2024-13-01T10:00:00Z host app: no month", None, "app", "no month"),
        ("no stamp at all", None, "System", "no stamp at all"),
        ("\r", None, "System", ""),
    ],
)
def test_stamps(log, zone, line, stamp, source, message):
    (entry,) = entries(log(line.encode(), "2024-07-10T12:00:00"))

    assert (entry["timestamp"], entry["source"], entry["message"]) == (stamp, source, message)


def test_february_29_gets_the_latest_leap_year(log, zone):
    (entry,) = entries(log(b"Feb 29 10:00:00 host app: x", "2023-07-10T12:00:00"))

    assert entry["timestamp"] == "2020-02-29T08:00:00Z"


@pytest.mark.parametrize("number", range(24))
def test_the_level_is_that_of_the_priority(log, number):
    levels = ["CRITICAL"] * 3 + ["ERROR", "WARNING", "INFORMATION", "INFORMATION", "VERBOSE"]

    (entry,) = entries(log(b"<%d>Jan  1 00:00:00 h fatal error: critical failure" % number))

    assert entry["level"] == levels[number % 8]


def test_filters(log):
    provider = log(b"".join(b"<%d>2024-01-01T00:00:%02dZ h p%d: m%d\n" % (n % 8, n, n % 3, n) for n in range(60)))

    def found(**arguments):
        return [entry["id"] for entry in entries(provider, order="oldest", **arguments)]

    assert found(minLevel="ERROR") == [n + 1 for n in range(60) if n % 8 <= 3]
    assert found(source="P1", minLevel="CRITICAL") == [n + 1 for n in range(60) if n % 8 <= 2 and n % 3 == 1]
    assert found(startTime="2024-01-01T00:00:10Z", endTime="2024-01-01T00:00:20Z") == [*range(11, 21)]
    assert found(text="M5") == [6, *range(51, 61)]
    assert found(eventId=0) == [*range(1, 61)]
    assert found(eventId=[1, 2]) == []


def test_a_line_without_a_time_is_in_no_range_of_times(log):
    assert entries(log(b"no stamp\n"), startTime="1970-01-01") == []


def test_a_very_long_line_is_cut(log):
    provider = log(b"2024-01-01T00:00:00Z h p: " + b"x" * 3_000_000 + b"\nshort\n")

    short, long = entries(provider)
    assert (short["message"], long["message"], long["messageTruncated"]) == ("short", "x" * 4096, True)
    assert entries(provider, order="oldest") == [long, short]


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_cursors_do_not_shift_when_lines_are_added(log, order):
    provider = log(b"".join(b"line %d\n" % n for n in range(50)))
    answer = logs.ask(provider, order=order, limit=7)
    found = answer["entries"]
    while "nextCursor" in answer:
        with open(log.path, "ab") as file:
            file.write(b"later\n" * 3)
        answer = logs.ask(provider, order=order, limit=7, cursor=answer["nextCursor"])
        assert (answer["totalCount"], answer["totalExact"]) == (50, True)
        found += answer["entries"]

    assert [entry["message"] for entry in found] == [f"line {n}" for n in range(50)][:: 1 if order == "oldest" else -1]
    assert logs.ask(provider, limit=1)["entries"][0]["id"] > 60


def test_lines_are_recounted_after_the_file_was_replaced(log):
    provider = log(b"a\nb\nc\n")
    cursor = logs.ask(provider, limit=1)["nextCursor"]
    os.rename(log.path, f"{log.path}.1")
    log(b"new\n")

    assert [entry["id"] for entry in entries(provider)] == [1]
    with pytest.raises(ToolError) as caught:
        logs.ask(provider, limit=1, cursor=cursor)
    assert caught.value.error == "bad_cursor"


def test_lines_are_recounted_after_the_file_was_truncated(log):
    provider = log(b"a\nb\nc\n")
    entries(provider)
    with open(log.path, "r+b") as file:
        file.truncate(2)

    assert [(entry["id"], entry["message"]) for entry in entries(provider)] == [(1, "a")]


def test_concurrent_queries_count_correctly(log, monkeypatch):
    monkeypatch.setattr(textlog, "_BLOCK", 4)
    provider = log(b"a\nb\n" * 10)
    (text,) = provider.log_sources[0].logs()
    early, late = LogPage(0, 100, 1 << 20, 4096), LogPage(0, 100, 1 << 20, 4096)
    begun = text.scan(LogQuery(), early)
    next(begun)
    with open(log.path, "ab") as file:
        file.write(b"c\n" * 10)
    assert [*text.scan(LogQuery(), late)]
    assert [*begun]

    assert [entry["id"] for entry in early.entries] == [*range(20, 0, -1)]
    assert [entry["id"] for entry in late.entries] == [*range(30, 0, -1)]


@quick
@given(content=st.binary(max_size=400))
def test_any_bytes_are_lines(log, content):
    provider = log(content)

    assert len(entries(provider)) == len(entries(provider, order="oldest")) == logs.ask(provider)["totalCount"]
    assert logs.run(provider.list_logs())["logs"][0]["recordCount"] == logs.ask(provider)["totalCount"]


def test_other_kinds_of_files_count_as_missing(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    provider = logs.served(
        {
            "kind": "textlog",
            "files": {"pipe": str(tmp_path / "pipe"), "folder": str(tmp_path), "gone": str(tmp_path / "x")},
        }
    )

    assert [log["reason"] for log in logs.run(provider.list_logs())["logs"]] == ["missing"] * 3


@pytest.mark.parametrize("path", ["/var/log/dpkg.log", "/var/log/syslog", "/var/log/alternatives.log"])
def test_logs_of_this_machine(path):
    if not os.access(path, os.R_OK):
        pytest.skip(f"there is no {path} here, or not for us")
    provider = logs.served({"kind": "textlog", "files": {"System": path}})
    with open(path, "rb") as file:
        count = len(file.read().splitlines())

    answer = logs.ask(provider, limit=10)
    assert answer["totalCount"] >= count
    for entry in answer["entries"]:
        assert entry["timestamp"] is None or datetime.fromisoformat(entry["timestamp"]) < datetime.now(UTC).replace(
            year=2999
        )
    assert len(logs.pages(provider, order="oldest", limit=1000)) >= count
