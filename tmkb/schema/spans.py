"""Parse YAML that other programs own: everything is accepted, and each node knows its span in the text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from tmkb.schema.values import JsonValue

_WORDS = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:bool", "tag:yaml.org,2002:int")


class SpanError(Exception):
    """The text is not valid YAML, or has several documents. ``offset``: the index of the character."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason, offset)
        self.reason = reason
        self.offset = offset


@dataclass
class Node:
    """A value.

    Args:
        kind: `map`, `list`, `scalar` or `alias`.
        start: the index of the first character.
        end: the index behind the last character of the content; comments and line ends behind it do not count.
        is_flow: whether a collection is written with brackets.
        text: the value of a scalar, or the name of an alias.
        marks: tag, anchor and quotes, for comparison.
        members: of a map, keys and values.
        items: of a list.
    """

    kind: str
    start: int
    end: int
    is_flow: bool = False
    text: str = ""
    marks: tuple[str | None, ...] = ()
    members: list[tuple[Node, Node]] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)

    def get(self, key: str) -> Node | None:
        """Return the value of a key of a map; None if it is missing."""
        return next((value for name, value in self.members if name.kind == "scalar" and name.text == key), None)

    def value(self) -> JsonValue:
        """Return the value; aliases and keys that are no scalars have none."""
        if self.kind == "map":
            return {name.text: value.value() for name, value in self.members}
        if self.kind == "list":
            return [item.value() for item in self.items]
        if self.kind == "alias":
            return None
        return self.text if any(self.marks) else _scalar(self.text)


def parse(text: str) -> Node | None:
    """Return the value of a text; None if it has only comments and white space.

    Raises:
        SpanError: the text is not valid.
        RecursionError: it is nested too deeply.
    """
    try:
        events: list[Any] = [*yaml.parse(text, Loader=yaml.SafeLoader)]
        starts = [each for each in events if isinstance(each, yaml.DocumentStartEvent)]
        if len(starts) > 1:
            second: Any = starts[1].start_mark
            raise SpanError("a second document begins", second.index)
        content = [each for each in events if isinstance(each, yaml.NodeEvent | yaml.CollectionEndEvent)]
        following = iter(content)
        return _node(next(following), following) if content else None
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        raise SpanError(str(error.problem or error.context), mark.index if mark else 0) from error
    except yaml.reader.ReaderError as error:
        raise SpanError(f"the character U+{error.character:04X} cannot stand here", error.position) from error


def _node(event: Any, events: Iterator[Any]) -> Node:
    """Return the node that begins with an event."""
    start, end = event.start_mark.index, event.end_mark.index
    if isinstance(event, yaml.AliasEvent):
        return Node("alias", start, end, text=event.anchor or "")
    marks = (event.tag, event.anchor)
    if isinstance(event, yaml.ScalarEvent):
        return Node("scalar", start, end, text=event.value, marks=(*marks, event.style))
    kind = "map" if isinstance(event, yaml.MappingStartEvent) else "list"
    node = Node(kind, start, end, bool(event.flow_style), marks=marks)
    children: list[Node] = []
    following: Any = next(events)
    while not isinstance(following, yaml.CollectionEndEvent):
        children.append(_node(following, events))
        following = next(events)
    closing: Any = following.end_mark
    node.end = closing.index if node.is_flow else children[-1].end if children else node.end
    if kind == "list":
        node.items = children
    else:
        node.members = list(zip(children[::2], children[1::2], strict=True))
    return node


def _scalar(text: str) -> JsonValue:
    """Return the value of a scalar without quotes and tag."""
    loader: Any = yaml.SafeLoader("")
    tag = loader.resolve(yaml.ScalarNode, text, (True, False))
    if tag not in _WORDS:
        return text
    try:
        value: JsonValue = yaml.safe_load(text)
    except ValueError:  # thousands of digits
        return text
    return value
