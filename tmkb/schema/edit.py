"""Change one value in a YAML or JSON file and keep every other byte.

PyYAML reports where each node starts and ends, and only that part of the text is replaced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from tmkb.schema import emission, paths, reader, textfile
from tmkb.schema.reader import Path
from tmkb.schema.values import JsonValue


class _Entry(NamedTuple):
    """An entry of a map or list: the offsets of its key or dash, of its value, and of its end."""

    step: str | int
    start: int
    value: int
    end: int
    node: Node


class Text:
    """The text of one file, with edits applied. Every path must exist, except for the last step in `add`."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.json = file.endswith(".json")
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self._root: Any = None

    def has(self, path: Path) -> bool:
        """Return whether ``path`` exists."""
        node = self._compose()
        for step in path:
            match = next((entry for entry in self._entries(node) if entry.step == step), None)
            if match is None:
                return False
            node = match.node
        return True

    def set(self, path: Path, value: JsonValue) -> None:
        """Replace the value at ``path`` and keep its style."""
        self.set_all({path: value})

    def set_all(self, values: Mapping[Path, JsonValue]) -> None:
        """Replace the values at several paths, none of which is inside another."""
        old = reader.parse(self.text, self.file).value
        edits = [(*self._at(path), value) for path, value in values.items() if not same(reader.at(old, path), value)]
        for node, flow, value in sorted(edits, key=lambda each: -each[0].start_mark.index):
            self._set(node, flow, value)

    def set_block(self, path: Path, value: JsonValue) -> None:
        """Replace the collection at ``path``, the value of a key, by one in block style where YAML permits that."""
        node, flow = self._at(path)
        if flow or not node.flow_style or not value:
            self.set(path, value)
            return
        entry = next(entry for entry in self._entries(self._at(path[:-1])[0]) if entry.step == path[-1])
        before, indent = len(self.text[: entry.value].rstrip()), self._column(entry.start) + 2
        self._splice(before, entry.end, f"\n{' ' * indent}{emission.lines(value, indent)}")

    def _set(self, node: Any, flow: bool, value: JsonValue) -> None:
        start, end = node.start_mark.index, self._end(node)
        if isinstance(node, ScalarNode):
            self._splice(start, end, self._in_place_of(node, value, flow))
        elif not flow and not node.flow_style and not (isinstance(value, dict | list) and value):
            if self.text[self._line_start(start) : start].strip():  # it starts after a dash
                self._splice(start, end, emission.inline(value))
                return
            opened = self._opened(start)  # remove the lines, keep a comment after the key
            self._splice(self._line_end(opened), end, "")
            self._splice(opened, opened, " " + emission.inline(value))
        else:
            long = not flow and not node.flow_style and not self.json
            self._splice(start, end, emission.lines(value, self._column(start)) if long else self._short(value, start))

    def add(self, path: Path, value: JsonValue) -> None:
        """Append ``value``: under a new key of a map, or as the last entry of the list at ``path``."""
        node, flow = self._at(path[:-1])
        entries = self._entries(node)
        head = ""
        if isinstance(node, MappingNode):
            name = str(path[-1])
            head = (emission.json_lines(name, 0) if self.json else emission.key(name)) + ": "
        if flow or node.flow_style:
            self._add_inside(node, entries, head, value)
            return
        column = self._column(entries[0].start)
        written = self._beside(value, column + 2, len(path) == 1) if head else emission.inline(value)
        at = self._line_end(entries[-1].end)
        self._splice(at, at, f"\n{' ' * column}{head.rstrip() if written[0] == chr(10) else head or '- '}{written}")

    def remove(self, path: Path) -> None:
        """Remove the value at ``path`` with its key."""
        node, flow = self._at(path[:-1])
        entries = self._entries(node)
        at = next(number for number, entry in enumerate(entries) if entry.step == path[-1])
        before, entry = entries[at - 1] if at else None, entries[at]
        after = entries[at + 1] if at + 1 < len(entries) else None
        inside = flow or node.flow_style
        if before is None and after is None and path[:-1] and not inside:
            self.set(path[:-1], {} if isinstance(node, MappingNode) else [])
        elif inside and after is None:
            self._splice(before.end if before else entry.start, entry.end, "")
        elif inside or self.text[self._line_start(entry.start) : entry.start].strip():
            self._splice(entry.start, after.start if after else entry.end, "")
        else:
            start, end = self._line_start(entry.start), self._line_end(entry.end)
            last = end == len(self.text)
            self._splice(start - len(self.newline) * last, end + len(self.newline) * (not last), "")

    def _compose(self) -> Any:
        if self._root is None:
            text = reader.like_yaml(self.text) if self.json else self.text
            text = f"\n{text[1:]}" if text.startswith("\ufeff") else text  # libyaml does not count a byte order mark
            self._root = yaml.compose(text.replace("\r\n", " \n"), Loader=reader.LOADER)  # and CRLF as one character
        return self._root

    def _splice(self, start: int, end: int, text: str) -> None:
        self.text = self.text[:start] + text.replace("\n", self.newline) + self.text[end:]
        self._root = None

    def _at(self, path: Path) -> tuple[Any, bool]:
        """Return the node at ``path``, and whether it is inside braces or brackets."""
        node, flow = self._compose(), False
        for step in path:
            flow = flow or bool(node.flow_style)
            node = next(entry.node for entry in self._entries(node) if entry.step == step)
        return node, flow

    def _entries(self, node: Any) -> list[_Entry]:
        if isinstance(node, ScalarNode):
            return []
        pairs = node.value if isinstance(node, MappingNode) else enumerate(node.value)
        entries = []
        for name, value in pairs:
            step = name.value if isinstance(name, Node) else name
            begin = name.start_mark.index if isinstance(name, Node) else value.start_mark.index
            if not isinstance(name, Node) and not node.flow_style:
                begin = self.text.rindex("-", 0, begin)
            entries.append(_Entry(step, begin, value.start_mark.index, self._end(value), value))
        return entries

    def _end(self, node: Any) -> int:
        """Return the end of ``node``; a block ends with its last line that is not empty."""
        if not isinstance(node, ScalarNode):
            last: int = self._entries(node)[-1].end if node.value and not node.flow_style else node.end_mark.index
            return last
        if node.style not in ("|", ">"):
            return int(node.end_mark.index)
        start: int = node.start_mark.index
        return start + len(self.text[start : node.end_mark.index].rstrip())

    def _in_place_of(self, node: Any, value: JsonValue, flow: bool) -> str:
        start = node.start_mark.index
        if self.json:
            return emission.json_lines(value, self._indent(start))
        if node.style in ("|", ">") and isinstance(value, str):
            header, *before = self.text[start : self._end(node)].splitlines()
            indent = next(len(line) - len(line.lstrip()) for line in before if line)
            lines = [line[indent:] for line in before]
            if (written := emission.block(value, header.rstrip(), indent, lines)) is not None:
                return written
            return emission.scalar(value, '"', flow)
        return emission.inline(value) if isinstance(value, dict | list) else emission.scalar(value, node.style, flow)

    def _short(self, value: JsonValue, start: int) -> str:
        return emission.json_lines(value, self._indent(start)) if self.json else emission.inline(value)

    def _beside(self, value: JsonValue, indent: int, top: bool) -> str:
        """Return ``value`` for the place after a key: on the same line if it is short and no top-level map."""
        text = emission.inline(value) if isinstance(value, dict | list) else emission.scalar(value, None, False)
        fits = len(text) <= emission.SHORT and not (top and isinstance(value, dict))
        if fits or not value or not isinstance(value, dict | list):
            return text
        return f"\n{' ' * indent}{emission.lines(value, indent)}"

    def _add_inside(self, node: Any, entries: list[_Entry], head: str, value: JsonValue) -> None:
        """Add an entry inside braces or brackets, on a new line if the last entry is on one."""
        if not entries:
            start = node.start_mark.index
            self._splice(start + 1, node.end_mark.index - 1, head + self._short(value, start))
            return
        last = entries[-1]
        before = self.text[self._line_start(last.start) : last.start]
        between = ", " if before.strip() else ",\n" + before
        self._splice(last.end, last.end, between + head + self._short(value, last.start))

    def _opened(self, start: int) -> int:
        """Return the offset after the colon or dash on the line before the block that begins at ``start``."""
        line = self._line_start(start)
        while True:
            line, end = self._line_start(line - 1), line - 1
            code = self.text[line:end].split(" #")[0].rstrip()
            if code.endswith((":", "-")):
                return line + len(code)

    def _line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, max(at, 0)) + 1

    def _line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        end = len(self.text) if end < 0 else end
        return end - 1 if self.text[end - 1 : end + 1] == "\r\n" else end

    def _column(self, at: int) -> int:
        return at - self._line_start(at)

    def _indent(self, at: int) -> int:
        line = self.text[self._line_start(at) :]
        return len(line) - len(line.lstrip(" "))


def same(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two values have the same JSON text: 1 is neither true nor 1.0, and the order of keys matters."""
    return json.dumps(one) == json.dumps(other)


def read(file: str) -> Text:
    """Read ``file`` without converting line ends. Raises DocumentError."""
    return Text(textfile.read(file, paths.shown(file)), file)
