"""Read YAML and JSON files strictly, and record the line and column of every value.

Only JSON's types are accepted: maps with string keys, lists, strings, numbers, true, false, null. Refused, each with
its position: duplicate keys, anchors, aliases, tags, several documents, and keys without a value. Plain scalars that a
YAML 1.1 reader reads differently (``2025-11-25`` as a date, ``on`` as a boolean, ``010`` as 8) must be quoted.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml

from tmkb.errors import DocumentError, Problem
from tmkb.schema import syntax, textfile
from tmkb.schema.values import JsonObject, JsonValue

Path = tuple[str | int, ...]

SUFFIXES = (".yaml", ".yml", ".json")
_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)')  # outside of strings
DEEPEST = 64  # levels of nesting; our deepest own file has 14
VALUES = 50_000  # in one file; our largest has 4,500

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_ESCAPE = re.compile(r"\\(?:u([dD][89a-fA-F][0-9a-fA-F]{2})|.)")
# What an author of YAML 1.1 most likely meant by a word. `on` and `off` are just as often strings.
_BOOLEANS = {"yes": "true", "no": "false", "true": "true", "false": "false"}
_CONSTANTS: dict[str, JsonValue] = {"null": None, "true": True, "false": False}
# Tag that a YAML 1.1 reader gives to a plain scalar → the rule with the fix, if it is not `ambiguous`.
_AMBIGUOUS = {"tag:yaml.org,2002:timestamp": "unquoted_date", "tag:yaml.org,2002:merge": "merge_key"}
_JOINED = re.compile(r"[{,]\s*([\w$-]+):([^\s{},:]+)$")  # a key and a value without a space between them
_STARTS, _ENDS = (yaml.MappingStartEvent, yaml.SequenceStartEvent), (yaml.MappingEndEvent, yaml.SequenceEndEvent)
_STRING_TAG = "tag:yaml.org,2002:str"
# The C parser is faster; it is missing if PyYAML was built without libyaml.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Position(NamedTuple):
    """A position in a file; line and column count from 1."""

    file: str
    line: int
    column: int


@dataclass(slots=True)
class Document:
    """The value of one file, with the position of each value (`values`) and of each key (`keys`)."""

    file: str
    value: JsonValue
    values: dict[Path, Position]
    keys: dict[Path, Position]

    def problem(self, rule: str, path: Path, /, **fields: object) -> Problem:
        """Return a problem with the value at ``path``, or at the nearest parent that has a position."""
        return Problem(rule, *self._nearest(path, (self.values, self.keys)), **fields)

    def key_problem(self, rule: str, path: Path, /, **fields: object) -> Problem:
        """Return a problem with the key of the value at ``path``."""
        return Problem(rule, *self._nearest(path, (self.keys, self.values)), **fields)

    def origin(self, path: Path) -> Position:
        """Return the position of the value at ``path``, or of the nearest parent that has one."""
        return self._nearest(path, (self.values, self.keys))

    def _nearest(self, path: Path, places: tuple[dict[Path, Position], ...]) -> Position:
        while path and not any(path in table for table in places):
            path = path[:-1]
        return next((table[path] for table in places if path in table), Position(self.file, 1, 1))

    def mapping(self) -> JsonObject:
        """Return the value if it is a map, else an empty map."""
        return self.value if isinstance(self.value, dict) else {}

    def section(self, key: str) -> dict[str, Any]:
        """Return the map under ``key``; an empty map if it is missing or has another type."""
        value = self.mapping().get(key)
        return value if isinstance(value, dict) else {}

    def part(self, path: Path) -> Document:
        """Return the value at ``path``, which must exist, as a document."""
        values, keys = (
            {place[len(path) :]: position for place, position in table.items() if place[: len(path)] == path}
            for table in (self.values, self.keys)
        )
        return Document(self.file, at(self.value, path), values, keys)

    def under(self, key: str) -> Document:
        """Return a document whose only key is ``key``, with this document as its value."""
        values, keys = (
            {(key, *place): position for place, position in table.items()} for table in (self.values, self.keys)
        )
        return Document(self.file, {key: self.value}, values, keys)


def entries(value: Any) -> Iterable[tuple[str | int, Any]]:
    """Return the keys or indices of a map or list with their values; nothing for a scalar."""
    return value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()


def at(value: Any, path: Path) -> Any:
    """Return the value at ``path`` in ``value``, which must exist."""
    for step in path:
        value = value[step]
    return value


def read(path: str, shown: str | None = None, values: int = VALUES, limit: int = textfile.LARGEST) -> Document:
    """Read the file at ``path``.

    ``shown``: the file name in problems (default: ``path``). ``values``: the maximum number of values; ``limit``: of
    bytes.

    Raises:
        DocumentError: with every problem of the file.
    """
    shown = shown or path
    return parse(textfile.read(path, shown, limit), shown, values)


def parse(text: str, file: str, values: int = VALUES) -> Document:
    """Read ``text``, the content of ``file``: JSON if the name ends in .json, else YAML.

    ``values``: the maximum number of values.

    Raises:
        DocumentError: with every problem of the text.
    """
    if not file.endswith(".json"):
        return _Builder(file, values).build(text)
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise DocumentError([Problem("json_syntax", file, error.lineno, error.colno, reason=error.msg)]) from error
    except _NoNumberError as error:
        start = next(match.start(1) for match in _CONSTANT.finditer(text) if match[1])
        raise DocumentError(
            [Problem("json_syntax", file, *place(text, start), reason=f"{error} is not JSON")]
        ) from error
    except (RecursionError, ValueError):  # nested too deep, or a number with too many digits: the builder reports both
        return _Builder(file, values).build(like_yaml(text))
    # Positions come from the YAML parser. It refuses two things that JSON permits: tabs between tokens and escaped
    # surrogates. `like_yaml` replaces both without changing any column.
    document = _Builder(file, values).build(like_yaml(text))
    document.value = value
    return document


class _NoNumberError(Exception):
    """A constant that Python's JSON reader accepts as a number although it is not JSON: NaN, Infinity."""


def _no_constant(name: str) -> None:
    raise _NoNumberError(name)


@functools.lru_cache(maxsize=4096)  # the same words stand in many messages
def bare(text: str, flow: bool = False) -> bool:
    """Return whether the reader reads unquoted ``text`` as this string; ``flow``: inside braces or brackets."""
    form, expected = (f"[{{k: {text}}}]\n", [{"k": text}]) if flow else (f"k: {text}\n", {"k": text})
    try:
        return parse(form, "").value == expected and "\n" not in text
    except DocumentError:
        return False


def like_yaml(text: str) -> str:
    """Return the JSON in ``text`` in a form that the YAML parser accepts; every character keeps its column."""
    return _ESCAPE.sub(_private, text.replace("\t", " "))


def place(text: str, at: int) -> tuple[int, int]:
    """Return line and column, from 1, of the character at index ``at``."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _private(escape: re.Match[str]) -> str:
    surrogate = escape[1]
    return f"\\u{int(surrogate, 16) + 0x800:04x}" if surrogate else escape[0]


class _Builder:
    """Builds a Document from the parser's events. Without recursion, so that deep nesting is a problem, not a crash.

    Reading continues after a problem where possible, so that an author sees all of them at once.
    """

    def __init__(self, file: str, values: int) -> None:
        self.file = file
        self.max_values = values
        self.text = ""
        self.values: dict[Path, Position] = {}
        self.keys: dict[Path, Position] = {}
        self.problems: list[Problem] = []
        self.last: yaml.Event | None = None  # the scalar that was read last

    def build(self, text: str) -> Document:
        self.text = text
        try:
            value = self.document(yaml.parse(text, Loader=LOADER))
        except UnicodeEncodeError as error:  # an unpaired surrogate, which UTF-8 cannot encode
            raise DocumentError([Problem("not_utf8", self.file, *place(text, error.start))]) from error
        except yaml.MarkedYAMLError as error:
            raise DocumentError([*self.problems, *self.syntax(error)]) from error
        except yaml.reader.ReaderError as error:
            at = text.index(chr(error.character))  # its position is counted in bytes by libyaml
            problem = Problem("syntax", self.file, *place(text, at), reason=error.reason)
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
        """Return the value that begins with the event ``first`` and continues in ``events``."""
        stack: list[dict[str, JsonValue] | list[JsonValue]] = []
        path: list[str | int] = []  # of the open value; the last step is _KEY while a map expects a key
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
                if len(self.values) > self.max_values:
                    self.fault("too_many_values", event, limit=self.max_values)
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
        """Report aliases, anchors and tags."""
        if getattr(event, "anchor", None) is not None:  # alias events have one too
            self.fault("alias", event)
        if getattr(event, "tag", None) is not None:
            self.fault("tag", event, tag=getattr(event, "tag", ""))

    def scalar(self, event: yaml.ScalarEvent) -> JsonValue:
        self.last = event
        text: str = event.value
        if event.style:  # quoted or a block; a plain scalar has no style
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _NUMBER.fullmatch(text):
            return self.number(text, event)
        if not text:
            self.no_value(event)
            return text
        for tag, pattern in yaml.SafeLoader.yaml_implicit_resolvers.get(text[0], []):
            if tag != _STRING_TAG and pattern.match(text):
                plain = text.replace("_", "").lstrip("0")  # 1_000 and 007
                nearest = _BOOLEANS.get(text.lower(), plain if _NUMBER.fullmatch(plain) else "")
                self.fault(_AMBIGUOUS.get(tag, "ambiguous"), event, text=text, nearest=nearest)
        return text

    def no_value(self, event: yaml.ScalarEvent) -> None:
        """Report a key without a value; in braces, it can be a placeholder, or lack the space after its colon."""
        mark = event.start_mark
        assert mark is not None  # the parser marks every event
        if self.text[mark.index : mark.index + 1] not in ("}", ","):
            self.fault("no_value", event)
        elif joined := _JOINED.search(self.text, 0, mark.index):
            self.fault("no_space", event, key=joined[1], value=joined[2])
        else:
            self.fault("bare_brace", event)

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

    def syntax(self, error: yaml.MarkedYAMLError) -> list[Problem]:
        """Return the problem for a syntax error; none if its line already has one, which most likely caused it."""
        rule, (line, column), fields = syntax.explain(error, self.text, self.last)
        is_known = any(problem.line == line + 1 for problem in self.problems)
        return [] if is_known else [Problem(rule, self.file, line + 1, column + 1, limit=DEEPEST, **fields)]

    def fault(self, rule: str, event: yaml.Event, **fields: object) -> None:
        place = self.place(event)
        self.problems.append(Problem(rule, place.file, place.line, place.column, **fields))


_KEY = "\0key"  # no key of a YAML file can contain NUL
