"""Find, add and remove the tables of one entry in a TOML text; everything else stays as it is.

`tomllib` reads the values. The positions of statements come from a scanner that relies on the text being valid.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tmkb.clients.faults import TextError
from tmkb.schema.values import JsonObject, JsonValue

_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")
_TUPLE = re.compile(r"\(('[^']*',? ?)+\)")  # how the standard library writes a path
_DIGITS = re.compile(r"[0-9_]{4300,}")  # which Python does not convert
_SKIPPED = re.compile(r"(?:[ \t\r\n]++|\#[^\n]*+)*")
_SPACE = re.compile(r"[ \t]*+")
_KEY = re.compile(r""""[^"\\\n]*+(?:\\.[^"\\\n]*+)*"|'[^'\n]*+'|[A-Za-z0-9_-]++""")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
# Parts of a value: strings of several lines, strings, comments, brackets, line ends, everything else.
_PART = re.compile(
    r'''"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*"{3,5}|\'\'\'[^']*+(?:'(?!'')[^']*+)*'{3,5}'''
    r"""|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*"|'[^'\n]*+\'"""
    r"""|\#[^\n]*+|[\[{]|[\]}]|\n|[^"'\#\[\]{}\n]++""",
    re.S,
)


class Statement(NamedTuple):
    """A header or an assignment: its span, the path that it begins or assigns, whether it is a header."""

    start: int
    end: int
    path: tuple[str, ...]
    is_header: bool


def load(text: str) -> dict[str, Any]:
    """Return the value of a text; numbers with a fraction stay strings. Raises TextError."""
    try:
        return tomllib.loads(text, parse_float=str)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _PLACE.search(message)
        offset = len(text)
        if place:
            line, column = int(place[1]), int(place[2])
            offset = sum(len(each) + 1 for each in text.split("\n")[: line - 1]) + column - 1
        reason = _PLACE.sub("", message).replace("(at end of document)", "").strip()
        reason = _TUPLE.sub(lambda found: ".".join(_KEY.findall(found[0])).replace("'", ""), reason)
        raise TextError("client_syntax", offset, reason=reason[:1].lower() + reason[1:]) from error
    except ValueError as error:
        number = _DIGITS.search(text)
        raise TextError("client_long_number", number.start() if number else 0) from error
    except RecursionError as error:
        raise TextError("client_too_deep", 0, levels=sys.getrecursionlimit()) from error


def entries(text: str, key: Sequence[str]) -> dict[str, tuple[JsonValue, int]]:
    """Return the entries of the table at a path: name → value and offset. Raises TextError."""
    table: Any = load(text)
    for depth, step in enumerate(key):
        table = table.get(step, {})
        if not isinstance(table, dict):
            raise TextError("client_not_a_map", 0, key=".".join(key[: depth + 1]))
    places: dict[str, int] = {}
    size = len(key)
    for each in statements(text):
        if each.path[:size] == tuple(key):
            for name in each.path[size : size + 1] or (() if each.is_header else table):
                places.setdefault(name, each.start)
    return {name: (value, places.get(name, 0)) for name, value in table.items()}


def rest(text: str, key: Sequence[str], name: str) -> object:
    """Return everything but one entry, for comparison. Raises TextError."""
    return _without(load(text), (*key, name))


def _without(table: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return a table without the entry at ``path``, and without tables that only lead there."""
    inner = table.get(path[0])
    if len(path) == 1:
        inner = None
    elif isinstance(inner, dict):
        inner = _without(inner, path[1:]) or None
    kept = {key: value for key, value in table.items() if key != path[0]}
    return kept if inner is None else {**kept, path[0]: inner}


def fresh(key: Sequence[str], name: str, entry: JsonObject, newline: str) -> str:
    """Return the text of a new file with one entry."""
    return newline.join(_table((*key, name), entry)) + newline


def with_entry(text: str, key: Sequence[str], name: str, entry: JsonObject) -> str:
    """Return ``text`` with an entry in the table at a path: at the end, or in place of the one that is there.

    Raises TextError, also if the table is written on one line.
    """
    entries(text, key)
    newline = "\r\n" if "\r\n" in text else "\n"
    path = (*key, name)
    lines = newline.join(_table(path, entry))
    runs = _runs(text, path)
    if runs:
        begin, end = runs[0]
        ending = newline if text[begin:end].endswith("\n") else ""
        result = text[:begin] + lines + ending + _cut(text, runs[1:])[end:]
    elif not text.strip():
        result = text + lines + newline
    elif text.endswith("\n"):
        result = text + (newline if text[:-1].rstrip("\r")[-1:] != "\n" else "") + lines + newline
    else:
        result = text + newline * 2 + lines
    _check(text, result, key, name, entry)
    return result


def without_entry(text: str, key: Sequence[str], name: str) -> str:
    """Return ``text`` without an entry of the table at a path. Raises TextError, also if it is written on one line."""
    entries(text, key)
    runs = _runs(text, (*key, name))
    result = text
    for begin, end in reversed(runs):
        before, after = result[:begin], result[end:]
        if not after.strip() and not text[begin:end].endswith("\n"):
            before = _without_line_end(before)
        if not after.strip() or re.match(r"\r?\n", after):  # the empty line above belongs to the entry
            before = _without_line_end(before) if re.search(r"(?:^|\n)\r?\n\Z", before) else before
        result = before + after
    _check(text, result, key, name, None)
    return result


def statements(text: str) -> Iterator[Statement]:
    """Yield the headers and assignments of a valid text."""
    at = 0
    table: tuple[str, ...] = ()
    while True:
        skipped = _SKIPPED.match(text, at)
        at = skipped.end() if skipped else at
        if at >= len(text):
            return
        start, is_header = at, text[at] == "["
        if is_header:
            opening = 2 if text.startswith("[[", at) else 1
            path, at = _path(text, at + opening)
            at += opening
            table = path
        else:
            inner, at = _path(text, at)
            path, at = table + inner, _end_of_value(text, at + 1)
        yield Statement(start, at, path, is_header)


def _path(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """Return a path with dots, and the position of what follows it."""
    path: list[str] = []
    while True:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr] # matches always
        found = _KEY.match(text, at)
        assert found is not None
        word = found.group()
        path.append(next(iter(tomllib.loads(f"{word} = 0"))) if word[0] in "\"'" else word)
        at = _SPACE.match(text, found.end()).end()  # type: ignore[union-attr]
        if text[at : at + 1] != ".":
            return tuple(path), at
        at += 1


def _end_of_value(text: str, at: int) -> int:
    """Return the end of a value, without a comment and white space behind it."""
    depth, end = 0, at
    while at < len(text):
        found = _PART.match(text, at)
        assert found is not None
        part = found.group()
        if part == "\n" and not depth:
            break
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(part, 0)
        at = found.end()
        if part[0] != "#" and part.strip():
            end = at - len(part) + len(part.rstrip())
    return end


def _runs(text: str, path: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return the spans of whole lines that define what is at ``path``."""
    runs: list[tuple[int, int]] = []
    is_inside = False
    for each in statements(text):
        is_ours = each.path[: len(path)] == path
        if is_ours:
            begin, end = text.rfind("\n", 0, each.start) + 1, text.find("\n", each.end)
            end = len(text) if end < 0 else end + 1
            if is_inside:
                begin = runs.pop()[0]
            runs.append((begin, end))
        is_inside = is_ours
    return runs


def _cut(text: str, runs: Sequence[tuple[int, int]]) -> str:
    for begin, end in reversed(runs):
        text = text[:begin] + text[end:]
    return text


def _without_line_end(text: str) -> str:
    return text[: -2 if text.endswith("\r\n") else -1] if text.endswith("\n") else text


def _check(before: str, after: str, key: Sequence[str], name: str, entry: JsonObject | None) -> None:
    """Raise TextError unless the texts differ in the entry only."""
    try:
        table: Any = load(after)
        for step in key:
            table = table.get(step, {})
        is_right = table.get(name) == entry and rest(before, key, name) == rest(after, key, name)
    except TextError:
        is_right = False
    if not is_right:
        place = next((each.start for each in statements(before) if each.path == tuple(key)), 0)
        raise TextError("client_one_line", place, key=".".join(key))


def _table(path: Sequence[str], entry: JsonObject) -> list[str]:
    """Return the lines of a table."""
    lines = [f"[{'.'.join(map(_key, path))}]"]
    return lines + [f"{_key(key)} = {_value(value)}" for key, value in entry.items()]


def _key(word: str) -> str:
    return word if _BARE.fullmatch(word) else _value(word)


def _value(value: JsonValue) -> str:
    """Return a value on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    text = json.dumps(value, ensure_ascii=False, default=str)  # a date becomes a string, which `_check` refuses
    return text.replace("\x7f", "\\u007f")
