"""Write values as YAML: in the style of the value they replace, else as short as is unambiguous."""

from __future__ import annotations

import io
import json
import textwrap
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, SingleQuotedScalarString

from tmkb.errors import DocumentError
from tmkb.schema import reader
from tmkb.schema.values import JsonValue

SHORT = 96  # characters of a value that stays on one line
_WIDE = 120  # columns of a folded text
_UNFOLDED = 1 << 20  # strings are never folded, because folding can change them


class _Representer(RoundTripRepresenter):
    """Writes null explicitly: our reader refuses a key without a value."""

    def null(self, value: None) -> Any:
        return self.represent_scalar("tag:yaml.org,2002:null", "null")


_Representer.add_representer(type(None), _Representer.null)


def writer() -> YAML:
    """Return a ruamel.yaml writer with the layout of our files."""
    yaml = YAML()
    yaml.Representer = _Representer
    yaml.preserve_quotes = True
    yaml.width = _UNFOLDED
    yaml.brace_single_entry_mapping_in_flow_sequence = True
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def scalar(value: JsonValue, style: str | None, flow: bool) -> str:
    """Return a scalar on one line; a string is quoted as in ``style``, or unquoted if ``style`` is None and allowed."""
    if not isinstance(value, str):
        return json.dumps(value)
    if style == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if style is None and reader.bare(value, flow):
        return value
    return json.dumps(value, ensure_ascii=not value.isprintable())


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
    if not isinstance(value, dict | list):
        return scalar(value, None, True)
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return "{" + ", ".join(f"{key(name)}: {inline(inner)}" for name, inner in value.items()) + "}"


def lines(value: JsonValue, indent: int) -> str:
    """Return a collection in block style; the first line is not indented."""
    text = io.StringIO()
    writer().dump(styled(value, block=True), text)
    written = textwrap.dedent(text.getvalue()).rstrip("\n")
    return written.replace("\n", "\n" + " " * indent)


def json_lines(value: JsonValue, indent: int) -> str:
    """Return ``value`` as JSON, on one line if it is short."""
    short = json.dumps(value, ensure_ascii=False)
    if len(short) <= SHORT or not isinstance(value, dict | list):
        return short
    return json.dumps(value, ensure_ascii=False, indent=2).replace("\n", "\n" + " " * indent)


def key(name: str) -> str:
    """Return ``name`` as a key, unquoted if that is unambiguous."""
    return scalar(name, None, True)


def styled(value: JsonValue, block: bool = False) -> Any:
    """Return ``value`` for ruamel.yaml, collections in flow style if they are short."""
    if isinstance(value, str):
        return _string(value)
    if not isinstance(value, dict | list):
        return value
    made: Any = (
        CommentedMap({_string(key): styled(inner) for key, inner in value.items()})
        if isinstance(value, dict)
        else CommentedSeq([styled(inner) for inner in value])
    )
    if not value or not (block or len(json.dumps(value, ensure_ascii=False)) > SHORT):
        made.fa.set_flow_style()
    return made


def _string(text: str) -> Any:
    """Return ``text`` quoted, unless it is a plain word that every YAML reader reads as a string."""
    bare = text.replace("_", "").replace("/", "").replace("$", "")
    if bare.isascii() and bare.isalpha() and text not in ("null", "true", "false"):
        return text
    return SingleQuotedScalarString(text) if '"' in text and text.isprintable() else DoubleQuotedScalarString(text)


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
