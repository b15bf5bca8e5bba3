"""Write values as YAML: in the style of the value they replace, else as short as is unambiguous."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable

from tmkb.errors import DocumentError
from tmkb.schema import reader
from tmkb.schema.values import JsonValue

SHORT = 96  # characters of a value that stays on one line
_WIDE = 120  # columns of a folded text
_WORD = re.compile(r"[-_/$]*[A-Za-z][-_/$A-Za-z]*")  # no other string stays without quotes in a new collection


def scalar(value: JsonValue, style: str | None, flow: bool) -> str:
    """Return a scalar on one line; a string is quoted as in ``style``, or if that is empty, only where it must be."""
    if not isinstance(value, str):
        return json.dumps(value)
    if style == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if not style and reader.bare(value, flow):
        return value
    written = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else escaped(char) for char in written)


def block(text: str, header: str, indent: int, before: list[str]) -> str | None:
    """Return ``text`` as a literal or folded block with this ``header``; None if such a block cannot represent it.

    ``before``: the lines of the old block. Unchanged lines of a folded text keep their breaks.
    """
    pad, keep = " " * indent, "" if "-" in header else "\n"
    if not text.endswith(keep) or not (body := text.removesuffix(keep) if keep else text):
        return None
    lines = body.split("\n") if header[0] == "|" else _folded(body, before, _WIDE - indent)
    written = header + "".join(f"\n{pad}{line}" if line else "\n" for line in lines)
    try:
        same = reader.parse(f"key: {written}\n", "").value == {"key": text}
    except DocumentError:
        same = False
    return written if same else None


def inline(value: JsonValue) -> str:
    """Return ``value`` on one line, collections in flow style."""
    return _flow(value, lambda leaf: scalar(leaf, None, True))


def lines(value: JsonValue, indent: int) -> str:
    """Return a collection that is not empty in block style; the first line is not indented."""
    first, *rest = _block(value)
    return "\n".join([first, *_indented(rest, indent)])


def json_lines(value: JsonValue, indent: int) -> str:
    """Return ``value`` as JSON, on one line if it is short."""
    written = json.dumps(value, ensure_ascii=False)
    if len(written) > SHORT and isinstance(value, dict | list):
        written = json.dumps(value, ensure_ascii=False, indent=2).replace("\n", "\n" + " " * indent)
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in written)


def key(name: str) -> str:
    """Return ``name`` as a key, unquoted if that is unambiguous."""
    return scalar(name, None, True)


def escaped(char: str) -> str:
    """Return the escape sequence of YAML; JSON's escapes a character above U+FFFF as two surrogates."""
    return f"\\U{ord(char):08x}" if ord(char) > 0xFFFF else f"\\u{ord(char):04x}"


def _flow(value: JsonValue, leaf: Callable[[JsonValue], str]) -> str:
    """Return ``value`` on one line; ``leaf`` writes keys and scalars."""
    if isinstance(value, list):
        return "[" + ", ".join(_flow(inner, leaf) for inner in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{leaf(name)}: {_flow(inner, leaf)}" for name, inner in value.items()) + "}"
    return leaf(value)


def _block(value: JsonValue) -> list[str]:
    """Return the lines of a collection in block style, with short inner collections in flow style.

    A text of several lines becomes a literal block.
    """
    written = []
    for name, inner in reader.entries(value):
        head = f"{_quoted(name)}:" if isinstance(name, str) else "-"
        if isinstance(inner, str) and "\n" in inner and (literal := block(inner, _literal(inner), 2, [])):
            written += f"{head} {literal}".split("\n")
        elif not inner or not isinstance(inner, dict | list) or _is_short(inner):
            written.append(f"{head} {_flow(inner, _quoted)}")
        elif head == "-":
            first, *rest = _block(inner)
            written += [f"- {first}", *_indented(rest)]
        else:
            written += [head, *_indented(_block(inner))]
    return written


def _indented(lines: list[str], indent: int = 2) -> list[str]:
    return [" " * indent + line if line else "" for line in lines]


def _literal(text: str) -> str:
    return "|" if text.endswith("\n") else "|-"


def _is_short(value: JsonValue) -> bool:
    written = json.dumps(value, ensure_ascii=False)
    return len(written) <= SHORT and "\\n" not in written


def _quoted(value: JsonValue) -> str:
    """Return a scalar; a string is quoted unless it is a plain word that every YAML reader reads as a string."""
    if not isinstance(value, str):
        return scalar(value, None, True)
    if _WORD.fullmatch(value) and reader.bare(value, True):
        return value
    return scalar(value, "'" if '"' in value else '"', True)


def _folded(text: str, before: list[str], width: int) -> list[str]:
    """Return the lines of a folded block; a line break in the text becomes an additional empty line."""
    if "\n" in text or "" in before:
        paragraphs = [_wrapped(part.split(" "), width) for part in text.split("\n")]
        return [line for part in paragraphs for line in ("", *part)][1:]
    words = text.split(" ")
    head = _unchanged(words, before)
    words = words[sum(len(line.split(" ")) for line in head) :]
    tail = _unchanged(words[::-1], [" ".join(line.split(" ")[::-1]) for line in before[len(head) :][::-1]])
    rest = words[: len(words) - sum(len(line.split(" ")) for line in tail)]
    return [*head, *_wrapped(rest, width), *before[len(before) - len(tail) :]]


def _unchanged(words: list[str], lines: list[str]) -> list[str]:
    """Return the leading ``lines`` that ``words`` begin with."""
    at = 0
    for number, line in enumerate(lines):
        of_line = line.split(" ")
        if words[at : at + len(of_line)] != of_line:
            return lines[:number]
        at += len(of_line)
    return lines


def _wrapped(words: list[str], width: int) -> list[str]:
    return textwrap.wrap(" ".join(words), width, break_long_words=False, break_on_hyphens=False)
