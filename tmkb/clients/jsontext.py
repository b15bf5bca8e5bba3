"""Find, add and remove one entry in a JSON text; everything else stays as it is.

Comments and trailing commas are accepted, as in the files of editors. The text is spliced at the positions of values,
and never written anew, so that comments, order, spelling and white space survive.
"""

from __future__ import annotations

import bisect
import functools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tmkb.clients.faults import TextError
from tmkb.schema.values import JsonObject, JsonValue

_DEEPEST = 100
_TOKEN = re.compile(
    r"""[ \t\r\n]*+ (?: (?P<comment>//[^\r\n]*+|/\*(?s:.*?)\*/)
    | (?P<string>"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*")
    | (?P<scalar>(?:-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?|true|false|null)(?![\w.+-]))
    | (?P<mark>[{}\[\]:,]) | (?P<end>\Z) )""",
    re.X,
)
_BLANK = re.compile(r"[ \t]*")
_EXPECTED = {"}": "a comma or }", "]": "a comma or ]"}


@dataclass(slots=True)
class Node:
    """A value: its span; for a map its `members`, for a list its `items`."""

    start: int
    end: int
    members: list[Member] | None = None
    items: list[Node] | None = None


@dataclass(slots=True)
class Member:
    """A key of a map, where it begins, its value, and the position of the comma behind it."""

    key: str
    start: int
    node: Node
    comma: int | None = None


@dataclass
class Text:
    """A parsed text. `comments`: their spans; `trailing`: the positions of trailing commas."""

    text: str
    root: Node
    comments: list[tuple[int, int]] = field(default_factory=list)
    trailing: list[int] = field(default_factory=list)

    def map_at(self, key: Sequence[str]) -> Node | None:
        """Return the map at a path; None if it is missing. Raises TextError if a step is no map, or is there twice."""
        node = self.root
        for depth in range(len(key) + 1):
            if node.members is None:
                raise TextError("client_not_a_map", node.start, key=".".join(key[:depth]) or "the file")
            if depth < len(key):
                member = self.member(node, key[depth])
                if member is None:
                    return None
                node = member.node
        return node

    def member(self, node: Node, name: str) -> Member | None:
        """Return the member of a map with that key; None if it is missing. Raises TextError if it is there twice."""
        found = [member for member in node.members or [] if member.key == name]
        if len(found) > 1:
            raise TextError("client_twice", found[1].start, key=name, first=self.line(found[0].start))
        return found[0] if found else None

    def line(self, offset: int) -> int:
        """Return the number of a line, from 1."""
        return self.text.count("\n", 0, offset) + 1

    def value(self, node: Node) -> JsonValue:
        """Return the value of a node."""
        if node.members is not None:
            return {member.key: self.value(member.node) for member in node.members}
        if node.items is not None:
            return [self.value(item) for item in node.items]
        found: JsonValue = json.loads(self.text[node.start : node.end], parse_int=_whole)
        return found


def _whole(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:  # thousands of digits
        return digits


# Parse


@functools.lru_cache(maxsize=4)
def parse(text: str) -> Text:
    """Parse a text; the result must not be changed. Only comments stand for an empty map. Raises TextError."""
    parsed = Text(text, Node(len(text), len(text), []))
    reader = _Reader(parsed, _tokens(text, parsed.comments))
    if not reader.kind:
        return parsed
    parsed.root = reader.value(0)
    if reader.kind:
        raise TextError("client_syntax", reader.start, reason="something follows the value of the file")
    return parsed


def _tokens(text: str, comments: list[tuple[int, int]]) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each token, at last an empty kind; collect the comments."""
    at = 0
    while match := _TOKEN.match(text, at):
        kind = match.lastgroup or ""
        start, at = match.span(kind)
        if kind == "comment":
            comments.append((start, at))
        elif kind == "end":
            yield "", at, at
        else:
            yield (text[start] if kind == "mark" else kind), start, at
    at += len(text[at:]) - len(text[at:].lstrip(" \t\r\n"))
    raise TextError("client_syntax", at, reason=_unreadable(text, at))


def _unreadable(text: str, at: int) -> str:
    if text[at] == '"':
        return "this string does not end in its line, or has an escape that JSON does not know"
    if text.startswith("/*", at):
        return "this comment does not end"
    if text[at] == "'":
        return "strings have double quotes"
    word = re.match(r"[\w$.+-]+", text[at:])
    return f"{word.group()[:40]!r} needs quotes" if word else f"{text[at]!r} cannot stand here"


class _Reader:
    """Reads values from tokens; `kind`, `start` and `end` are of the next token."""

    def __init__(self, parsed: Text, tokens: Iterator[tuple[str, int, int]]) -> None:
        self.parsed = parsed
        self.tokens = tokens
        self.kind, self.start, self.end = next(tokens)

    def value(self, depth: int) -> Node:
        """Read one value."""
        if depth > _DEEPEST:
            raise TextError("client_too_deep", self.start, levels=_DEEPEST)
        node = Node(self.start, self.end)
        if self.kind == "{":
            members: list[Member] = []
            node.members = members
            self._list(node, "}", lambda: self._member(members, depth))
        elif self.kind == "[":
            items: list[Node] = []
            node.items = items
            self._list(node, "]", lambda: items.append(self.value(depth + 1)))
        elif self.kind in ("string", "scalar"):
            self._next()
        else:
            raise TextError("client_syntax", self.start, reason=f"{'a value' if self.kind else 'the rest'} is missing")
        return node

    def _next(self) -> None:
        self.kind, self.start, self.end = next(self.tokens)

    def _list(self, node: Node, closing: str, element: Any) -> None:
        """Read elements up to the ``closing`` mark."""
        self._next()
        while self.kind != closing:
            element()
            if self.kind == ",":
                comma = self.start
                if node.members is not None:
                    node.members[-1].comma = comma
                self._next()
                if self.kind == closing:
                    self.parsed.trailing.append(comma)
            elif self.kind != closing:
                raise TextError("client_syntax", self.start, reason=f"{_EXPECTED[closing]} is missing")
        node.end = self.end
        self._next()

    def _member(self, members: list[Member], depth: int) -> None:
        start, end = self.start, self.end
        if self.kind != "string":
            raise TextError(
                "client_syntax", start, reason=f"{'a key in quotes' if self.kind else 'the rest'} is missing"
            )
        self._next()
        if self.kind != ":":
            raise TextError("client_syntax", self.start, reason="a colon is missing")
        self._next()
        key = self.parsed.text[start + 1 : end - 1]
        key = json.loads(f'"{key}"') if "\\" in key else key
        member = Member(key, start, Node(start, end))
        members.append(member)
        member.node = self.value(depth + 1)


# Read


def entries(text: str, key: Sequence[str]) -> dict[str, tuple[JsonValue, int]]:
    """Return the entries of the map at a path: name → value and offset of the key. Raises TextError."""
    parsed = parse(text)
    node = parsed.map_at(key)
    return {each.key: (parsed.value(each.node), each.start) for each in (node.members if node else None) or []}


def rest(text: str, key: Sequence[str], name: str) -> object:
    """Return everything but one entry, for comparison; scalars as they are spelled. Raises TextError."""
    parsed = parse(text)
    return _without(parsed, parsed.root, (*key, name))


def _without(parsed: Text, node: Node, path: Sequence[str]) -> object:
    """Return a comparable form of a value without the entry at ``path``, and without maps that only lead there."""
    if node.items is not None:
        return [_without(parsed, item, ()) for item in node.items]
    if node.members is None:
        return parsed.text[node.start : node.end]
    kept = []
    for member in node.members:
        if path and member.key == path[0]:
            inner = _without(parsed, member.node, path[1:]) if path[1:] else ()
            if inner == ():
                continue
        else:
            inner = _without(parsed, member.node, ())
        kept.append((member.key, inner))
    return tuple(kept)


# Edit


def fresh(key: Sequence[str], name: str, entry: JsonObject, newline: str) -> str:
    """Return the text of a new file with one entry."""
    return _written(_nested(key, {name: entry}), "", "  ", newline) + newline


def with_entry(text: str, key: Sequence[str], name: str, entry: JsonObject) -> str:
    """Return ``text`` with an entry in the map at a path, added or replaced. Raises TextError."""
    parsed = parse(text)
    node = parsed.root
    if node.start == node.end:
        newline = _newline(text)
        return text + ("" if text[-1:] in ("", "\n") else newline) + fresh(key, name, entry, newline)
    for depth, step in enumerate(key):
        if node.members is None:
            break
        member = parsed.member(node, step)
        if member is None:
            return _add(parsed, node, step, _nested(key[depth + 1 :], {name: entry}))
        node = member.node
    parsed.map_at(key)
    if present := parsed.member(node, name):
        style = _Style.of(parsed, node, present)
        span = present.node
        return text[: span.start] + style.written(entry) + text[span.end :]
    return _add(parsed, node, name, entry)


def without_entry(text: str, key: Sequence[str], name: str) -> str:
    """Return ``text`` without an entry of the map at a path, which stays. Raises TextError."""
    parsed = parse(text)
    node = parsed.map_at(key)
    member = node and parsed.member(node, name)
    if node is None or node.members is None or not member:
        return text
    before = node.members[node.members.index(member) - 1] if member is not node.members[0] else None
    comma = member.comma
    if comma is not None and _end_of_comments(parsed, member.node.end, comma) != member.node.end:
        end = _blank_end(text, member.node.end)
        has_line = text[end] in "\r\n"
        begin = _end_before(parsed, node, member, before) if has_line else member.start
        return text[:begin] + text[end:comma] + text[comma + 1 :]  # a comment in front of the comma stays
    begin, end = _span(parsed, node, member, before)
    if before is not None and before.comma is not None and comma is None:
        return text[: before.comma] + text[before.comma + 1 : begin] + text[end:]
    return text[:begin] + text[end:]


def _span(parsed: Text, node: Node, member: Member, before: Member | None) -> tuple[int, int]:
    """Return the span to cut with a member: its comma, and the white space in front of it."""
    text = parsed.text
    begin = _end_before(parsed, node, member, before)
    end = member.node.end if member.comma is None else member.comma + 1
    if len(node.members or []) == 1 and not (text[node.start + 1 : begin] + text[end : node.end - 1]).strip():
        return node.start + 1, node.end - 1
    blank_end = _blank_end(text, end)
    if text[blank_end : blank_end + 1] == "/":
        return member.start, blank_end  # a comment does not move to the line of another member
    if _is_line_comment(parsed, begin) and text[blank_end : blank_end + 1] not in ("\r", "\n"):
        return member.start, end  # what follows must not become part of the comment
    if before is None and member.comma is not None and "\n" not in text[begin : member.start]:
        return member.start, blank_end  # the next member takes its place
    return begin, end


def _end_before(parsed: Text, node: Node, member: Member, before: Member | None) -> int:
    """Return where the white space in front of a member begins."""
    after_previous = node.start + 1 if before is None else (before.comma or before.node.end) + 1
    return _end_of_comments(parsed, after_previous, member.start)


def _add(parsed: Text, node: Node, key: str, value: JsonValue) -> str:
    """Return the text with a member behind the last one of a map."""
    text = parsed.text
    if not node.members:
        return _add_first(parsed, node, key, value)
    last = node.members[-1]
    style = _Style.of(parsed, node, last)
    at = _end_of_comments(parsed, last.node.end if last.comma is None else last.comma + 1, node.end - 1)
    lead = style.lead
    if _is_line_comment(parsed, at) and "\n" not in lead:
        lead = style.newline + style.indent
    added = lead + style.member(key, value)
    if last.comma is None:
        return text[: last.node.end] + "," + text[last.node.end : at] + added + text[at:]
    return text[:at] + added + "," + text[at:]


def _add_first(parsed: Text, node: Node, key: str, value: JsonValue) -> str:
    """Return the text with the only member of a map."""
    text = parsed.text
    style = _Style.inside(parsed, node)
    at = _end_of_comments(parsed, node.start + 1, node.end - 1)
    behind = text[at : node.end - 1]
    lead = style.lead
    if _is_line_comment(parsed, at) and "\n" not in lead:
        lead = style.newline
    closing = style.newline + style.outer if "\n" in lead and "\n" not in behind else behind
    return text[:at] + lead + style.member(key, value) + closing + text[node.end - 1 :]


def _end_of_comments(parsed: Text, start: int, end: int) -> int:
    """Return the end of the last comment between two positions, else ``start``."""
    at = bisect.bisect_left(parsed.comments, (end, end))
    last = parsed.comments[at - 1] if at else (0, 0)
    return last[1] if last[0] >= start else start


def _blank_end(text: str, at: int) -> int:
    """Return the end of the spaces and tabs from a position on."""
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _is_line_comment(parsed: Text, end: int) -> bool:
    """Return whether a comment that ends at the end of its line ends here."""
    at = bisect.bisect_left([stop for _, stop in parsed.comments], end)
    found = at < len(parsed.comments) and parsed.comments[at]
    return bool(found and found[1] == end and parsed.text.startswith("//", found[0]))


@dataclass(frozen=True)
class _Style:
    """How members of a map are written. `lead`: the white space before a member; `outer`: that of the map's line."""

    lead: str
    indent: str
    outer: str
    unit: str
    newline: str
    separators: tuple[str, str]

    @classmethod
    def of(cls, parsed: Text, node: Node, member: Member) -> _Style:
        """Return the style of a member that is there."""
        text = parsed.text
        gap = text[_previous(text, member.start) : member.start]
        separators = _separators(text)
        lead = gap if "\n" in gap else " " if separators[0].endswith(" ") else ""
        indent = _indent(text, member.start)
        if "\n" in gap:
            lead = _newline(text) + indent
        return cls(lead, indent, _indent(text, node.start), _unit(parsed), _newline(text), separators)

    @classmethod
    def inside(cls, parsed: Text, node: Node) -> _Style:
        """Return the style of an empty map: on one line, if the whole text is."""
        text, newline, unit = parsed.text, _newline(parsed.text), _unit(parsed)
        outer = _indent(text, node.start)
        is_one_line = bool(parsed.root.members) and "\n" not in text[parsed.root.start : parsed.root.end]
        lead = "" if is_one_line else newline + outer + unit
        return cls(lead, outer + unit, outer, unit, newline, _separators(text))

    def member(self, key: str, value: JsonValue) -> str:
        """Return a member."""
        return json.dumps(key, ensure_ascii=False) + self.separators[1] + self.written(value)

    def written(self, value: JsonValue) -> str:
        """Return a value."""
        if "\n" not in self.lead:
            return json.dumps(value, ensure_ascii=False, separators=self.separators)
        return _written(value, self.indent, self.unit, self.newline)


def _previous(text: str, at: int) -> int:
    """Return the end of what precedes the white space before ``at``."""
    return len(text[:at].rstrip(" \t\r\n"))


def _indent(text: str, at: int) -> str:
    """Return the white space at the beginning of the line of ``at``."""
    begin = text.rfind("\n", 0, at) + 1
    return text[begin : _blank_end(text, begin)]


def _newline(text: str) -> str:
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def _unit(parsed: Text) -> str:
    """Return the white space of one level."""
    for first in (parsed.root.members or [])[:1]:
        if "\n" in parsed.text[parsed.root.start : first.start]:
            return _indent(parsed.text, first.start)
    return "  "


def _separators(text: str) -> tuple[str, str]:
    """Return the text between members and behind keys when they are on one line."""
    is_dense = re.search(r'":[^\s]', text) is not None and re.search(r'":\s', text) is None
    return (",", ":") if is_dense else (", ", ": ")


def _nested(key: Sequence[str], value: JsonObject) -> JsonObject:
    for step in reversed(key):
        value = {step: value}
    return value


def _written(value: JsonValue, indent: str, unit: str, newline: str) -> str:
    """Return a value on several lines; lists of scalars on one."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + unit
    members = [
        f"{inner}{json.dumps(key, ensure_ascii=False)}: {_written(each, inner, unit, newline)}"
        for key, each in value.items()
    ]
    return "{" + newline + ("," + newline).join(members) + newline + indent + "}"
