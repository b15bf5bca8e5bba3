"""Changes one value in a YAML or JSON file and nothing else: every byte stays that was not meant (ruamel.yaml).

ruamel.yaml says where each part of a text begins and ends; only the part in question is written anew. `replace` is for
files that are laid out by us, and writes the whole.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Mapping
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from tmkb.schema import emission, paths, reader, textfile
from tmkb.schema.reader import Path
from tmkb.schema.values import JsonValue


class _Entry(NamedTuple):
    """A part of a map or list: where it begins with its key or dash, and where what it names begins and ends."""

    step: str | int
    start: int
    value: int
    end: int
    node: Node


class Text:
    """The text of one file, and what is to be changed in it. A path has to be there, but for the last step of `add`."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.json = file.endswith(".json")
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self._root: Any = None

    def has(self, path: Path) -> bool:
        """Whether there is something at ``path``."""
        node = self._compose()
        for step in path:
            found = next((entry for entry in self._entries(node) if entry.step == step), None)
            if found is None:
                return False
            node = found.node
        return True

    def set(self, path: Path, value: JsonValue) -> None:
        """Put ``value`` in the place of what is there, in its style."""
        self.set_all({path: value})

    def set_all(self, values: Mapping[Path, JsonValue]) -> None:
        """The same at several places, none of which is inside of another."""
        doc = reader.parse(self.text, self.file)
        found = [(*self._at(path), value) for path, value in values.items() if not same(doc.part(path).value, value)]
        for node, flow, value in sorted(found, key=lambda each: -each[0].start_mark.index):
            self._set(node, flow, value)

    def _set(self, node: Any, flow: bool, value: JsonValue) -> None:
        start, end = node.start_mark.index, self._end(node)
        if isinstance(node, ScalarNode):
            self._splice(start, end, self._in_place_of(node, value, flow))
        elif not flow and not node.flow_style and not (isinstance(value, dict | list) and value):
            if self.text[self._line_start(start) : start].strip():  # it begins behind a dash
                self._splice(start, end, emission.inline(value))
                return
            opened = self._opened(start)  # the lines go, a comment behind the key stays
            self._splice(self._line_end(opened), end, "")
            self._splice(opened, opened, " " + emission.inline(value))
        else:
            long = not flow and not node.flow_style and not self.json
            self._splice(start, end, emission.lines(value, self._column(start)) if long else self._short(value, start))

    def add(self, path: Path, value: JsonValue) -> None:
        """Put ``value`` behind what is there: under a new key of a map, or as the last of the list at ``path``."""
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
        """Take away what is there, with its key."""
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
            self._root = YAML(typ="safe", pure=True).compose(text)
        return self._root

    def _splice(self, start: int, end: int, text: str) -> None:
        self.text = self.text[:start] + text.replace("\n", self.newline) + self.text[end:]
        self._root = None

    def _at(self, path: Path) -> tuple[Any, bool]:
        """The node at ``path``, and whether it stands in braces or brackets."""
        node, flow = self._compose(), False
        for step in path:
            flow = flow or bool(node.flow_style)
            node = next(entry.node for entry in self._entries(node) if entry.step == step)
        return node, flow

    def _entries(self, node: Any) -> list[_Entry]:
        if isinstance(node, ScalarNode):
            return []
        pairs = node.value if isinstance(node, MappingNode) else enumerate(node.value)
        found = []
        for name, value in pairs:
            step = name.value if isinstance(name, Node) else name
            begin = name.start_mark.index if isinstance(name, Node) else value.start_mark.index
            if not isinstance(name, Node) and not node.flow_style:
                begin = self.text.rindex("-", 0, begin)
            found.append(_Entry(step, begin, value.start_mark.index, self._end(value), value))
        return found

    def _end(self, node: Any) -> int:
        """Where ``node`` ends; a block does so with its last line that says something."""
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
            said = [line[indent:] for line in before]
            if (written := emission.block(value, header.rstrip(), indent, said)) is not None:
                return written
            return emission.scalar(value, '"', flow)
        if not isinstance(value, dict | list):
            return emission.scalar(value, node.style, flow)
        return emission.inline(value)

    def _short(self, value: JsonValue, start: int) -> str:
        return emission.json_lines(value, self._indent(start)) if self.json else emission.inline(value)

    def _beside(self, value: JsonValue, indent: int, top: bool) -> str:
        """``value`` as it stands behind a key: on the same line where it is short, unless it is a map at the top."""
        text = emission.inline(value) if isinstance(value, dict | list) else emission.scalar(value, None, False)
        fits = len(text) <= emission.SHORT and not (top and isinstance(value, dict))
        if fits or not value or not isinstance(value, dict | list):
            return text
        return f"\n{' ' * indent}{emission.lines(value, indent)}"

    def _add_inside(self, node: Any, entries: list[_Entry], head: str, value: JsonValue) -> None:
        """Add to what stands in braces or brackets: on a line of its own where the last one has that."""
        if not entries:
            start = node.start_mark.index
            self._splice(start + 1, node.end_mark.index - 1, head + self._short(value, start))
            return
        last = entries[-1]
        before = self.text[self._line_start(last.start) : last.start]
        between = ", " if before.strip() else ",\n" + before
        self._splice(last.end, last.end, between + head + self._short(value, last.start))

    def _opened(self, start: int) -> int:
        """Behind the colon or dash on the line before a block that begins at ``start``."""
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
    """Whether two values are written alike: 1 is neither true nor 1.0, and the order of keys counts."""
    return json.dumps(one) == json.dumps(other)


def read(file: str) -> Text:
    """Return the text of ``file``, with its own line ends. Raises DocumentError."""
    return Text(textfile.read(file, paths.shown(file)), file)


def replace(file: str, path: Path, value: JsonValue) -> None:
    """Put ``value`` at ``path``, which has to be there. The file is replaced at once or not at all."""
    yaml = emission.writer()
    with open(file, encoding="utf-8") as source:
        root: Any = yaml.load(source)
    parent: Any = root
    for part in path[:-1]:
        parent = parent[part]
    parent[path[-1]] = emission.styled(value, block=True)
    text = io.StringIO()
    yaml.dump(root, text)
    save(file, text.getvalue())


def save(file: str, text: str | None) -> None:
    """Make ``text`` the content of ``file``, at once or not at all; None: the file goes."""
    if text is None:
        os.unlink(file)
        return
    folder = os.path.dirname(file) or "."
    os.makedirs(folder, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as target:
            target.write(text)
        os.chmod(temporary, os.stat(file).st_mode if os.path.exists(file) else 0o644)
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise
