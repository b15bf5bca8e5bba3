"""Find, add and remove one entry in a YAML text; everything else stays as it is."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from tmkb.clients.faults import TextError
from tmkb.schema import emission, spans
from tmkb.schema.spans import Node
from tmkb.schema.values import JsonObject, JsonValue

_END = re.compile(r"^\.\.\.[ \t]*(?:#[^\n]*)?(?:\r?\n)*\Z", re.M)


def parse(text: str) -> Node | None:
    """Parse a text. Raises TextError."""
    try:
        return spans.parse(text)
    except spans.SpanError as error:
        raise TextError("client_syntax", error.offset, reason=error.reason) from error
    except RecursionError as error:
        raise TextError("client_too_deep", 0, levels=sys.getrecursionlimit()) from error


def entries(text: str, key: Sequence[str]) -> dict[str, tuple[JsonValue, int]]:
    """Return the entries of the map at a path: name → value and offset of the key. Raises TextError."""
    found = _map_at(text, parse(text), key)
    return {name.text: (value.value(), name.start) for name, value in (found.members if found else ())}


def rest(text: str, key: Sequence[str], name: str) -> object:
    """Return everything but one entry, for comparison; scalars as they are spelled. Raises TextError."""
    return without(parse(text), (*key, name))


def without(node: Node | None, path: Sequence[str]) -> object:
    """Return a comparable form of a value without the entry at ``path``, and without maps that only lead there."""
    if node is None:
        return ()
    if node.kind == "map":
        kept = []
        for key, value in node.members:
            is_on_path = bool(path) and key.kind == "scalar" and key.text == path[0]
            inner = without(value, path[1:] if is_on_path else ()) if path[1:] or not is_on_path else ()
            if not (is_on_path and inner == ()):
                kept.append((without(key, ()), inner))
        return tuple(kept)
    if node.kind == "list":
        return node.marks, [without(item, ()) for item in node.items]
    return () if path and _is_null(node) else (node.kind, node.text, node.marks)


def fresh(key: Sequence[str], name: str, entry: JsonObject, newline: str) -> str:
    """Return the text of a new file with one entry."""
    return newline.join(_block(key, name, entry, "")) + newline


def with_entry(text: str, key: Sequence[str], name: str, entry: JsonObject) -> str:
    """Return ``text`` with an entry in the map at a path, added or replaced.

    Raises TextError, also if the outermost map is written on one line.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    root = parse(text)
    found = _map_at(text, root, key)
    _require_unshared(root, key)
    if root is None or root.get(key[0]) is None:
        return _appended(text, _block(key, name, entry, _indent(text, root)), newline)
    if root.is_flow or len(key) > 1:
        raise TextError("client_flow", root.start, key=".".join(key))
    (head, value) = next((head, value) for head, value in root.members if head.text == key[0])
    if found is None or not found.members:
        begin = text.index(":", head.end) + 1
        end = value.end if value.end > begin else begin
        indent = _indent(text, root) + "  "
        return text[:begin] + newline + newline.join(_lines(name, entry, indent)) + text[end:]
    if found.is_flow:
        return _into_flow(text, found, name, entry)
    indent = _indent(text, found)
    lines = newline.join(_lines(name, entry, indent))
    if present := _member(found, name):
        return text[: present[0].start] + lines[len(indent) :] + text[_content_end(text, present[1]) :]
    end = _line_end(text, _content_end(text, found))
    if text[:end].endswith("\n"):
        return text[:end] + lines + newline + text[end:]
    return _with_line_end(text, newline) + lines


def without_entry(text: str, key: Sequence[str], name: str) -> str:
    """Return ``text`` without an entry of the map at a path, which stays. Raises TextError."""
    root = parse(text)
    found = _map_at(text, root, key)
    _require_unshared(root, key)
    present = _member(found, name) if found else None
    if root is None or found is None or present is None:
        return text
    at = [head.text for head, _ in found.members].index(name)
    if found.is_flow:
        begin = found.members[at - 1][1].end if at else present[0].start
        end = present[1].end if at or len(found.members) == 1 else found.members[1][0].start
        return text[:begin] + text[end:]
    begin = text.rfind("\n", 0, present[0].start) + 1
    end = _line_end(text, _content_end(text, present[1]))
    if len(found.members) > 1:
        if end == len(text) and not text.endswith("\n"):
            begin = len(text[:begin].rstrip("\r\n"))
        return text[:begin] + text[end:]
    head = next(head for head, _ in root.members if head.text == key[0])
    colon = text.index(":", head.end) + 1
    return text[:colon] + " {}" + text[colon:begin] + text[end:]


def _map_at(text: str, node: Node | None, key: Sequence[str]) -> Node | None:
    """Return the map at a path below ``node``; None if it is missing or empty. Raises TextError if a step is no map."""
    for depth, step in enumerate((*key, None)):
        if node is None or _is_null(node):
            return None
        if node.kind == "alias":
            raise TextError("client_shared_map", node.start, key=".".join(key[:depth]))
        if node.kind != "map":
            raise TextError("client_not_a_map", node.start, key=".".join(key[:depth]) or "the file")
        starts: dict[str, int] = {}
        for head, _ in node.members:
            first = starts.setdefault(head.text, head.start)
            if first != head.start and step in (None, head.text):
                raise TextError("client_twice", head.start, key=head.text, first=text.count("\n", 0, first) + 1)
        if step is not None:
            node = node.get(step)
    return node


def _require_unshared(node: Node | None, key: Sequence[str]) -> None:
    """Raise TextError if a change of the map at a path changes other maps, or hides what another map brings in."""
    for depth, step in enumerate((*key, None)):
        if node is None or node.kind != "map":
            return
        following = None if step is None else node.get(step)
        if node.marks[1] is not None or (step is not None and following is None and node.get("<<") is not None):
            raise TextError("client_shared_map", node.start, key=".".join(key[:depth]) or "the file")
        node = following


def _is_null(node: Node) -> bool:
    return node.kind == "scalar" and not any(node.marks) and node.text in ("", "~", "null", "Null", "NULL")


def _member(node: Node, name: str) -> tuple[Node, Node] | None:
    return next(((head, value) for head, value in node.members if head.text == name), None)


def _block(key: Sequence[str], name: str, entry: JsonObject, indent: str) -> list[str]:
    """Return the lines of nested maps with one entry."""
    lines = [f"{indent}{'  ' * depth}{emission.key(step)}:" for depth, step in enumerate(key)]
    return lines + _lines(name, entry, indent + "  " * len(key))


def _lines(name: str, entry: JsonObject, indent: str) -> list[str]:
    """Return the lines of one entry."""
    return [
        f"{indent}{emission.key(name)}:",
        *(f"{indent}  {emission.key(key)}: {emission.inline(value)}" for key, value in entry.items()),
    ]


def _appended(text: str, lines: Sequence[str], newline: str) -> str:
    """Return ``text`` with lines at its end, or before `...`; without a final line end if it has none.

    Raises TextError if the line end would become part of a text of several lines.
    """
    if ending := _END.search(text):
        return _appended(text[: ending.start()], lines, newline) + ending[0]
    if not text or text.endswith("\n"):
        return text + newline.join(lines) + newline
    return _with_line_end(text, newline) + newline.join(lines)


def _with_line_end(text: str, newline: str) -> str:
    """Return ``text`` with a line end; raise TextError if that becomes part of a text of several lines."""
    if without(parse(text + newline), ()) != without(parse(text), ()):
        raise TextError("client_no_line_end", len(text))
    return text + newline


def _into_flow(text: str, node: Node, name: str, entry: JsonObject) -> str:
    """Return ``text`` with an entry in a map that is written with brackets."""
    written = f"{emission.key(name)}: {emission.inline(entry)}"
    if present := _member(node, name):
        return text[: present[0].start] + written + text[present[1].end :]
    end = node.members[-1][1].end
    return f"{text[:end]}, {written}{text[end:]}"


def _indent(text: str, node: Node | None) -> str:
    """Return the white space before the keys of a map."""
    start = node.members[0][0].start if node is not None and node.members else 0
    return " " * (start - text.rfind("\n", 0, start) - 1)


def _content_end(text: str, node: Node) -> int:
    """Return the end of a value without the line ends behind it, which a block of text includes."""
    return len(text[: node.end].rstrip("\r\n ")) if text[: node.end].endswith("\n") else node.end


def _line_end(text: str, at: int) -> int:
    found = re.compile(r"[^\n]*\n?").match(text, at)
    return found.end() if found else at
