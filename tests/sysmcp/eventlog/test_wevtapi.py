"""The logs of a running Windows, with a fake of pywin32 that serves the records of an .evtx file."""

import re
import sys
import types

import evtx
import pytest

from tests.sysmcp import evtxfile, logs
from tmkb.errors import ToolError
from tmkb.sysmcp.eventlog import wevtapi
from tmkb.sysmcp.eventlog.logquery import LogQuery, StalePosition

pytestmark = pytest.mark.needs("evtx")

EVENTS = evtxfile.events(200)


@pytest.mark.parametrize(
    ("query", "newest", "path"),
    [
        (LogQuery(), None, "*"),
        (LogQuery(), 9, "*[System[EventRecordID<=9]]"),
        (LogQuery(after=5), 9, "*[System[EventRecordID<5 and EventRecordID<=9]]"),
        (LogQuery(after=5, oldest_first=True), 9, "*[System[EventRecordID>5 and EventRecordID<=9]]"),
        (LogQuery(rank=1), None, "*[System[(Level!=5)]]"),
        (LogQuery(rank=2), None, "*[System[(Level>=1 and Level<=3)]]"),
        (LogQuery(rank=3), None, "*[System[(Level>=1 and Level<=2)]]"),
        (LogQuery(rank=4), None, "*[System[(Level=1)]]"),
        (LogQuery(event_ids=frozenset({7, 6})), None, "*[System[(EventID=6 or EventID=7)]]"),
        (LogQuery(event_ids=frozenset(range(50))), None, "*"),
        (LogQuery(source="a'b\"c"), None, "*"),
        (
            LogQuery(start=0, end=1_500_000),
            None,
            "*[System[TimeCreated[@SystemTime>='1970-01-01T00:00:00Z' and @SystemTime<'1970-01-01T00:00:01.500000Z']]]",
        ),
    ],
)
def test_the_filter_for_windows(query, newest, path):
    assert wevtapi.xpath(query, newest) == path


@pytest.mark.parametrize("after", ["1] or *[System", [1], 1.5, {"a": 1}])
def test_only_numbers_are_places(after):
    with pytest.raises(StalePosition):
        wevtapi.xpath(LogQuery(after=after), 9)


class Refused(Exception):
    winerror = 5


class Library(types.ModuleType):
    """The part of win32evtlog that the module uses. It understands only the output of `xpath`."""

    EvtQueryChannelPath, EvtQueryForwardDirection, EvtQueryReverseDirection = 1, 0x100, 0x200
    EvtOpenChannelPath, EvtLogFileSize, EvtRenderEventXml, EvtFormatMessageEvent = 1, 3, 1, 1

    def __init__(self, path):
        super().__init__("win32evtlog")
        self.records = [record["data"] for record in evtx.PyEvtxParser(path).records()]

    def EvtOpenChannelEnum(self):
        return iter(["Security", "System", None])

    def EvtNextChannelPath(self, channels):
        return next(channels)

    def EvtOpenLog(self, path, flags):
        if path == "Security":
            raise Refused
        return path

    def EvtGetLogInfo(self, log, what):
        return 69632, 10

    def EvtQuery(self, path, flags, query):
        if path == "Security":
            raise Refused
        terms = re.findall(r"(EventRecordID|Level)(<=|>=|<|>|!=|=)([0-9]+)", query)
        names = [("EventRecordID", r"<EventRecordID>(\d+)"), ("Level", r"<Level>(\d+)")]
        compare = {
            "<=": int.__le__,
            ">=": int.__ge__,
            "<": int.__lt__,
            ">": int.__gt__,
            "!=": int.__ne__,
            "=": int.__eq__,
        }
        found = [
            record
            for record in self.records
            if all(
                compare[sign](int(re.search(dict(names)[name], record)[1]), int(number)) for name, sign, number in terms
            )
        ]
        return iter(found if flags & self.EvtQueryForwardDirection else found[::-1])

    def EvtNext(self, results, count):
        return tuple(record for _, record in zip(range(count), results, strict=False))

    def EvtRender(self, record, flags):
        return record

    def EvtOpenPublisherMetadata(self, source):
        if source == "kernel":
            raise Refused
        return source

    def EvtFormatMessage(self, publisher, record, flags):
        return f"{publisher} says so.\r\n"


@pytest.fixture
def provider(tmp_path, monkeypatch):
    path = tmp_path / "System.evtx"
    path.write_bytes(evtxfile.file(evtxfile.chunks(EVENTS)))
    monkeypatch.setitem(sys.modules, "win32evtlog", Library(str(path)))
    monkeypatch.setitem(sys.modules, "pywintypes", types.SimpleNamespace(error=Refused))
    provider = logs.served()
    provider.log_sources = [wevtapi.Channels(None)]
    return provider


def test_channels_are_listed(provider):
    security, system = logs.run(provider.list_logs())["logs"]

    assert (security["readable"], security["reason"]) == (False, "denied")
    assert system == {
        **{"name": "System", "kind": "wevtapi", "recordCount": 200, "sizeBytes": 69632, "readable": True},
        **{"oldest": "2023-11-14T22:13:20Z", "newest": "2023-11-14T22:36:33Z"},
    }


def test_only_named_channels_are_served(provider):
    provider.log_sources = [wevtapi.Channels(["System"])]

    assert [log["name"] for log in logs.run(provider.list_logs())["logs"]] == ["System"]


def test_a_channel_without_permission_is_an_error(provider):
    with pytest.raises(ToolError) as caught:
        logs.ask(provider, "Security")
    assert caught.value.error == "log_denied"


def test_messages_come_from_windows_providers(provider):
    first, second = logs.ask(provider, order="oldest", limit=2)["entries"]

    assert (first["message"], first["messageRendered"]) == (
        "param1=value 0; param2=Ünï 日本 <&>",
        False,
    )  # kernel has none
    assert second["message"] == "EventLog says so."
    assert "messageRendered" not in second


@pytest.mark.parametrize("order", ["newest", "oldest"])
@pytest.mark.parametrize("by", ["cursor", "offset"])
@pytest.mark.parametrize("arguments", [{}, {"minLevel": "WARNING"}, {"source": "EVENTLOG"}, {"text": "POWER SAYS"}])
def test_pages_join(provider, order, by, arguments):
    ids = [
        number
        for number, event in enumerate(EVENTS, 1)
        if ("minLevel" not in arguments or event.level in (1, 2, 3))
        and event.source.casefold() == arguments.get("source", event.source).casefold()
        and ("text" not in arguments or event.source == "Microsoft-Windows-Kernel-Power")
    ]
    found = logs.pages(provider, by=by, order=order, limit=7, **arguments)

    assert [entry["id"] for entry in found] == (ids if order == "oldest" else ids[::-1])
    assert logs.ask(provider, order=order, limit=7, **arguments)["totalCount"] == len(ids)


def test_without_the_library_named_channels_are_listed(provider, monkeypatch):
    monkeypatch.setitem(sys.modules, "win32evtlog", None)
    provider.log_sources = [wevtapi.Channels(["System"])]

    (log,) = logs.run(provider.list_logs())["logs"]
    assert (log["name"], log["reason"]) == ("System", "needs_pywin32")
    provider.log_sources = [wevtapi.Channels(None)]
    assert [log["name"] for log in logs.run(provider.list_logs())["logs"]] == ["*"]
