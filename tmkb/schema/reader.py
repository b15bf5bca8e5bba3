"""The one reader of YAML and JSON files: strict, and every value knows its line and column.

Only what JSON can say: maps with string keys, lists, strings, numbers, true, false, null. Refused, each with a
position: duplicate keys, anchors, aliases, tags, several documents, keys without a value, and plain scalars that a
YAML 1.1 reader would take for something else than we do (``2025-11-25`` a date, ``on`` a boolean, ``010`` an 8):
they want quotes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from tmkb.errors import DocumentError, Problem
from tmkb.schema import textfile
from tmkb.schema.values import JsonObject, JsonValue

Path = tuple[str | int, ...]

SUFFIXES = (".yaml", ".yml", ".json")
_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)')  # outside of strings
DEEPEST = 64  # levels of nesting; our deepest own file has 14
VALUES = 50_000  # in one file; our largest has 4,500

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_ESCAPE = re.compile(r"\\(?:u([dD][89a-fA-F][0-9a-fA-F]{2})|.)")
# What an author of YAML 1.1 most likely meant by a word. `on` and `off` are as often texts.
_BOOLEANS = {"yes": "true", "no": "false", "true": "true", "false": "false"}
_CONSTANTS: dict[str, JsonValue] = {"null": None, "true": True, "false": False}
# A character that the parser stumbles over → the rule that says what to do about it.
_STUMBLED = {"\t": "tab", ":": "stray_colon", "@": "reserved", "`": "reserved", "%": "reserved"}
_STARTS, _ENDS = (yaml.MappingStartEvent, yaml.SequenceStartEvent), (yaml.MappingEndEvent, yaml.SequenceEndEvent)
_STRING_TAG = "tag:yaml.org,2002:str"
# The C parser is the fast one; it is missing where PyYAML was built without libyaml.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Position(NamedTuple):
    """A place in a file; line and column count from 1."""

    file: str
    line: int
    column: int


class Document:
    """The value of one file, and where each part of it stands: `keys` for keys, `values` for what they name."""

    __slots__ = ("file", "keys", "value", "values")

    def __init__(self, file: str, value: JsonValue, values: dict[Path, Position], keys: dict[Path, Position]) -> None:
        self.file = file
        self.value = value
        self.values = values
        self.keys = keys

    def problem(self, rule: str, path: Path, /, **fields: object) -> Problem:
        """A problem with the value at ``path``, or with the nearest part above it that stands in a file."""
        return self._problem(rule, path, (self.values, self.keys), fields)

    def key_problem(self, rule: str, path: Path, /, **fields: object) -> Problem:
        """A problem with the key that names the value at ``path``."""
        return self._problem(rule, path, (self.keys, self.values), fields)

    def _problem(
        self, rule: str, path: Path, places: tuple[dict[Path, Position], ...], fields: dict[str, object]
    ) -> Problem:
        return Problem(rule, *self._nearest(path, places), **fields)

    def origin(self, path: Path) -> Position:
        """Where the value at ``path`` stands, or the nearest part above it that stands in a file."""
        return self._nearest(path, (self.values, self.keys))

    def _nearest(self, path: Path, places: tuple[dict[Path, Position], ...]) -> Position:
        while path and not any(path in table for table in places):
            path = path[:-1]
        return next((table[path] for table in places if path in table), Position(self.file, 1, 1))

    def mapping(self) -> JsonObject:
        """The value, where it is a map (a meta-schema has said so); else an empty one."""
        return self.value if isinstance(self.value, dict) else {}

    def part(self, path: Path) -> Document:
        """What stands at ``path``, which has to be there, as a document of its own."""
        value = self.value
        for step in path:
            value = value[step]  # type: ignore[index]  # the caller knows the shape
        values, keys = (
            {place[len(path) :]: position for place, position in table.items() if place[: len(path)] == path}
            for table in (self.values, self.keys)
        )
        return Document(self.file, value, values, keys)

    def under(self, key: str) -> Document:
        """A document that has this one under ``key``."""
        values, keys = (
            {(key, *place): position for place, position in table.items()} for table in (self.values, self.keys)
        )
        return Document(self.file, {key: self.value}, values, keys)


def read(path: str, shown: str | None = None, values: int = VALUES) -> Document:
    """Read the file at ``path``, which problems call ``shown``.

    ``values``: the most values that the file may have.

    Raises:
        DocumentError: with all problems of the file.
    """
    shown = shown or path
    return parse(textfile.read(path, shown), shown, values)


def parse(text: str, file: str, values: int = VALUES) -> Document:
    """Read ``text``, the content of ``file``: JSON where the name says so, else YAML.

    ``values``: the most values that the text may have.

    Raises:
        DocumentError: with all problems of the text.
    """
    if not file.endswith(".json"):
        return _Builder(file, values).build(text)
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise DocumentError([Problem("syntax", file, error.lineno, error.colno, reason=error.msg)]) from error
    except _NoNumberError as error:
        place = next(found.start(1) for found in _CONSTANT.finditer(text) if found[1])
        line, column = text.count("\n", 0, place) + 1, place - text.rfind("\n", 0, place)
        raise DocumentError([Problem("syntax", file, line, column, reason=f"{error} is no JSON")]) from error
    except (RecursionError, ValueError):  # nested too deep, or a number with too many digits: both are reported
        return _Builder(file, values).build(like_yaml(text))
    # Positions come from the YAML parser, of which JSON is a part but for two things: tabs between tokens (never inside
    # a string) and escaped surrogates, which stand in the private use area meanwhile. Columns stay what they are.
    document = _Builder(file, values).build(like_yaml(text))
    document.value = value
    return document


class _NoNumberError(Exception):
    """What Python's reader of JSON takes for a number, and nobody else does."""


def _no_constant(name: str) -> None:
    raise _NoNumberError(name)


def bare(text: str, flow: bool = False) -> bool:
    """Whether we read ``text`` without quotes as just this text, in ``flow`` between braces and brackets."""
    form, expected = (f"[{{k: {text}}}]\n", [{"k": text}]) if flow else (f"k: {text}\n", {"k": text})
    try:
        return parse(form, "").value == expected and "\n" not in text
    except DocumentError:
        return False


def like_yaml(text: str) -> str:
    """``text``, which is JSON, as a parser of YAML takes it; each character stays where it is."""
    return _ESCAPE.sub(_private, text.replace("\t", " "))


def _place(text: str, at: int) -> tuple[int, int]:
    """Line and column of the character ``at``."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _private(escape: re.Match[str]) -> str:
    surrogate = escape[1]
    return f"\\u{int(surrogate, 16) + 0x800:04x}" if surrogate else escape[0]


class _Builder:
    """Turns the parser's events into a Document. No recursion: too much depth is a problem, not a crash.

    Reading goes on after a fault where it can, so that an author is told all of them at once.
    """

    def __init__(self, file: str, most: int) -> None:
        self.file = file
        self.most = most
        self.text = ""
        self.values: dict[Path, Position] = {}
        self.keys: dict[Path, Position] = {}
        self.problems: list[Problem] = []

    def build(self, text: str) -> Document:
        self.text = text
        try:
            value = self.document(yaml.parse(text, Loader=_LOADER))
        except UnicodeEncodeError as error:  # half a surrogate pair, which no file can hold
            place = _place(text, error.start)
            raise DocumentError([Problem("not_utf8", self.file, *place)]) from error
        except yaml.MarkedYAMLError as error:
            raise DocumentError([*self.problems, self.syntax(error)]) from error
        except yaml.reader.ReaderError as error:
            place = _place(text, error.position if isinstance(error.position, int) else 0)
            problem = Problem("syntax", self.file, *place, reason=error.reason)
            raise DocumentError([*self.problems, problem]) from error
        if self.problems:
            raise DocumentError(self.problems)
        return Document(self.file, value, self.values, self.keys)

    def document(self, events: Iterator[yaml.Event]) -> JsonValue:
        for event in events:
            if isinstance(event, yaml.NodeEvent):
                value = self.node(event, events)
                break
        else:
            raise DocumentError([Problem("empty", self.file)])
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                self.fault("several_documents", event)
                break
        return value

    def node(self, first: yaml.Event, events: Iterator[yaml.Event]) -> JsonValue:
        """The value that begins with ``first``; takes its further events from ``events``."""
        stack: list[dict[str, JsonValue] | list[JsonValue]] = []
        path: list[str | int] = []  # of the value now open; in a map that waits for a key, the last entry is _KEY
        event: yaml.Event = first
        while True:
            if isinstance(event, _ENDS):
                value: JsonValue = stack.pop()
                path.pop()
            elif path and path[-1] is _KEY:
                path[-1] = self.key(event, path)
                event = next(events)
                continue
            else:
                self.refuse_properties(event)
                self.values[tuple(path)] = self.place(event)
                if len(self.values) > self.most:
                    self.fault("too_many_values", event, limit=self.most)
                    raise DocumentError(self.problems)
                if isinstance(event, _STARTS):
                    self.open(event, stack, path)
                    event = next(events)
                    continue
                value = self.scalar(event) if isinstance(event, yaml.ScalarEvent) else None
            if not stack:
                return value
            self.put(stack[-1], path, value)
            event = next(events)

    def open(
        self, event: yaml.Event, stack: list[dict[str, JsonValue] | list[JsonValue]], path: list[str | int]
    ) -> None:
        if len(stack) == DEEPEST:
            self.fault("too_deep", event, limit=DEEPEST)
            raise DocumentError(self.problems)
        stack.append({} if isinstance(event, yaml.MappingStartEvent) else [])
        path.append(_KEY if isinstance(event, yaml.MappingStartEvent) else 0)

    @staticmethod
    def put(parent: dict[str, JsonValue] | list[JsonValue], path: list[str | int], value: JsonValue) -> None:
        if isinstance(parent, list):
            parent.append(value)
            path[-1] = len(parent)
        else:
            parent[str(path[-1])] = value
            path[-1] = _KEY

    def key(self, event: yaml.Event, path: list[str | int]) -> str:
        self.refuse_properties(event)
        if not isinstance(event, yaml.ScalarEvent):
            self.fault("key_not_string", event)
            raise DocumentError(self.problems)
        key = self.scalar(event)
        if not isinstance(key, str):
            self.fault("key_not_string", event)
        here = (*path[:-1], str(key))
        if here in self.keys:
            self.fault("duplicate_key", event, key=key, first=self.keys[here].line)
        self.keys.setdefault(here, self.place(event))
        return str(key)

    def refuse_properties(self, event: yaml.Event) -> None:
        """Aliases, anchors and tags have no place in our files."""
        if getattr(event, "anchor", None) is not None:  # an alias event has one too
            self.fault("alias", event)
        if getattr(event, "tag", None) is not None:
            self.fault("tag", event, tag=getattr(event, "tag", ""))

    def scalar(self, event: yaml.ScalarEvent) -> JsonValue:
        text: str = event.value
        if event.style:  # quoted or a block; a plain scalar has no style
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _NUMBER.fullmatch(text):
            return self.number(text, event)
        if not text:
            self.fault("bare_brace" if self.at(event.start_mark) == "}" else "no_value", event)
            return text
        for tag, pattern in yaml.SafeLoader.yaml_implicit_resolvers.get(text[0], []):
            if tag != _STRING_TAG and pattern.match(text):
                self.fault("ambiguous", event, text=text, nearest=_BOOLEANS.get(text.lower(), ""))
        return text

    def number(self, text: str, event: yaml.ScalarEvent) -> int | float:
        try:
            value: int | float = json.loads(text)
        except ValueError:  # more digits than Python converts
            value = math.inf
        if math.isinf(value):
            self.fault("number_too_large", event)
        return value

    def place(self, event: yaml.Event) -> Position:
        mark = event.start_mark
        assert mark is not None  # the parser marks every event
        return Position(self.file, mark.line + 1, mark.column + 1)

    def at(self, mark: Any) -> str:
        """The character at ``mark``, which is of the C parser or of the other; an empty text where there is none."""
        return self.text[mark.index : mark.index + 1] if mark else ""

    def syntax(self, error: yaml.MarkedYAMLError) -> Problem:
        """What the parser stumbled over; in our words where a character tells what the matter is."""
        mark = error.problem_mark or error.context_mark
        place = (self.file, mark.line + 1, mark.column + 1) if mark else (self.file,)
        text, reason = self.at(mark), ", ".join(part for part in (error.context, error.problem) if part)
        rule = "syntax" if reason.startswith("while parsing") else _STUMBLED.get(text, "syntax")
        return Problem(rule, *place, text=text, reason=reason)

    def fault(self, rule: str, event: yaml.Event, **fields: object) -> None:
        place = self.place(event)
        self.problems.append(Problem(rule, place.file, place.line, place.column, **fields))


_KEY = "\0key"  # no key of a YAML file can contain NUL
