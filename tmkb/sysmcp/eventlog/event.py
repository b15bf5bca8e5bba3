"""An event of Windows, from the XML in which .evtx files and the Windows API give it."""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.sax.saxutils import unescape

from tmkb.sysmcp.eventlog.logentry import LogEntry, microseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

_LEVELS = {1: "CRITICAL", 2: "ERROR", 3: "WARNING", 5: "VERBOSE"}  # anything else is INFORMATION

# The beginning of an event as nearly all have it: seven times as fast as reading it as XML. Names in a file can be
# anything, so nothing that has matched is tried otherwise.
_HEAD = re.compile(
    r'<System><Provider\b(?>[^<>]*? Name="([^"<>]+)")[^<>]*+>(?:</Provider>)?'
    r"<EventID\b[^<>]*>([0-9]{1,9})</EventID>(?:<Version>[^<>]*</Version>)?<Level>([0-9]{1,9})</Level>"
)
_QUOTES = {"&quot;": '"', "&apos;": "'"}
_TAG = re.compile("<[^<>]*>")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


Kind = tuple[str, str, int]  # level, source, event id: what is filtered by. A log has few, however many events.


def kind(xml: str) -> Kind:
    """Level, source and event id of an event. Raises ValueError."""
    head = _HEAD.search(xml)
    if head is None:
        return _kind(_system(_tree(xml)))
    source = head[1] if "&" not in head[1] else unescape(head[1], _QUOTES)
    return _LEVELS.get(int(head[3]), "INFORMATION"), source, int(head[2])


def read(xml: str, log: str, message: str | None = None) -> LogEntry:
    """An entry of a log. ``message`` is the event's sentence where it is known; else it is that in the XML, or the
    values that the event was written with. Raises ValueError where `kind` does."""
    level, source, event_id = kind(xml)
    try:
        tree = _tree(xml)
        system = _system(tree)
    except ValueError:  # names that XML does not allow: what stands between the tags is better than nothing
        text = unescape(_TAG.sub(" ", xml), _QUOTES).strip()
        return LogEntry(0, log, level, source, event_id, text, None, {"messageRendered": False})
    rendered = message or _sentence(tree)
    return LogEntry(
        id=_number(_text(system.get("EventRecordID"))),
        log=_text(system.get("Channel")) or log,
        level=level,
        source=source,
        event_id=event_id,
        message=rendered or "; ".join(_values(tree)),
        time=_time(system.get("TimeCreated")),
        more={} if rendered else {"messageRendered": False},
    )


def _tree(xml: str) -> Element:
    """Control characters, which events may hold and XML may not, are replaced."""
    try:
        return ElementTree.fromstring(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", xml))
    except ElementTree.ParseError as error:
        raise ValueError("no XML") from error


def _system(tree: Element) -> dict[str, Element]:
    """What stands in the part System, by name."""
    for part in tree:
        if _name(part) == "System":
            return {_name(element): element for element in part}
    raise ValueError("no System")


def _kind(system: dict[str, Element]) -> Kind:
    provider = system.get("Provider")
    source = "" if provider is None else provider.get("Name") or provider.get("EventSourceName") or ""
    level = _LEVELS.get(_number(_text(system.get("Level"))), "INFORMATION")
    return level, source, _number(_text(system.get("EventID")))


def _time(created: Element | None) -> int | None:
    try:
        return None if created is None else microseconds(created.get("SystemTime") or "")
    except ValueError:
        return None


def _sentence(tree: Element) -> str:
    """What the machine that wrote the event said of it, where it was asked to."""
    messages = (
        element for part in tree if _name(part) == "RenderingInfo" for element in part if _name(element) == "Message"
    )
    return _text(next(messages, None))


def _values(tree: Element) -> Iterator[str]:
    """`name=value` of all that is not System, in its order; `value` where it has no name of its own."""
    for part in tree:
        if _name(part) in ("System", "RenderingInfo"):
            continue
        for element in part.iter():
            if len(element) or (element is part and not _text(part)):
                continue
            name = element.get("Name") or ("" if _name(element) == "Data" else _name(element))
            value = _text(element)
            if name or value:
                yield f"{name}={value}" if name else value


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _text(element: Element | None) -> str:
    return "" if element is None else (element.text or "").strip()


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
