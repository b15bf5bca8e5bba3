"""Parse Windows events: the XML of .evtx files and of the Windows API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.sax.saxutils import unescape

from tmkb.sysmcp.eventlog.logentry import LogEntry, parse_microseconds

_LEVELS = {1: "CRITICAL", 2: "ERROR", 3: "WARNING", 5: "VERBOSE"}  # others are INFORMATION

# The start of nearly all events; matching it is seven times as fast as parsing the XML. Names are not trusted, so the
# expression never backtracks.
_HEAD = re.compile(
    r'<System><Provider\b(?>[^<>]*? Name="([^"<>]+)")[^<>]*+>(?:</Provider>)?'
    r"<EventID\b[^<>]*>([0-9]{1,9})</EventID>(?:<Version>[^<>]*</Version>)?<Level>([0-9]{1,9})</Level>"
)
_QUOTES = {"&quot;": '"', "&apos;": "'"}
_TAG = re.compile("<[^<>]*>")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


Kind = tuple[str, str, int]  # level, source, event id. A log has few kinds, even with many events.


def kind(xml: str) -> Kind:
    """Return level, source and event id of an event. Raises ValueError."""
    head = _HEAD.search(xml)
    if head is None:
        return _kind(_system(_tree(xml)))
    source = head[1] if "&" not in head[1] else unescape(head[1], _QUOTES)
    return _LEVELS.get(int(head[3]), "INFORMATION"), source, int(head[2])


def read(xml: str, log: str, message: str | None = None) -> LogEntry:
    """Return the event as an entry of ``log``. Raises ValueError as `kind` does.

    Without a ``message``, the entry gets the message in the XML, else the values of the event.
    """
    level, source, event_id = kind(xml)
    try:
        tree = _tree(xml)
        system = _system(tree)
    except ValueError:  # names that XML does not allow: use the text between the tags
        text = unescape(_TAG.sub(" ", xml), _QUOTES).strip()
        return LogEntry(0, log, level, source, event_id, text, None, {"messageRendered": False})
    rendered = message or _message(tree)
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
    """Parse XML; replace control characters, which events may contain and XML may not."""
    try:
        return ElementTree.fromstring(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", xml))
    except ElementTree.ParseError as error:
        raise ValueError("no XML") from error


def _system(tree: Element) -> dict[str, Element]:
    """Return the elements of the part System by name."""
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
        return None if created is None else parse_microseconds(created.get("SystemTime") or "")
    except ValueError:
        return None


def _message(tree: Element) -> str:
    """Return the message that the writing machine rendered, or an empty text."""
    messages = (
        element for part in tree if _name(part) == "RenderingInfo" for element in part if _name(element) == "Message"
    )
    return _text(next(messages, None))


def _values(tree: Element) -> Iterator[str]:
    """Yield `name=value` for all elements outside System, in order; `value` if an element has no name."""
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
