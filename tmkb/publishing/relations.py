"""The picture of a pattern and its related patterns: where boxes and lines are, in units of the SVG."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import NamedTuple

from tmkb.knowledge.answer import unwrap
from tmkb.knowledge.pattern import Pattern

WIDTH = 340  # about that of a phone, so that texts are not scaled down there
_BOX_LEFT, _BOX_WIDTH, _CENTER_WIDTH = 102, 208, 66
_LINE, _GAP = 14, 8  # the height of a line of text, and the distance of boxes
_CHARACTERS = 28  # in a line of a name, so that it fits with wide fonts


class Box(NamedTuple):
    """A related pattern."""

    id: str
    number: str
    relationship: str
    why: str
    lines: list[str]  # of its name
    top: float
    height: float

    @property
    def middle(self) -> float:
        """The vertical middle."""
        return self.top + self.height / 2


class Figure(NamedTuple):
    """The picture; ``links`` are pairs of indexes of boxes whose patterns are related too."""

    boxes: list[Box]
    links: list[tuple[int, int]]
    height: float
    description: str
    width: int = WIDTH
    left: int = _BOX_LEFT
    box_width: int = _BOX_WIDTH
    center_width: int = _CENTER_WIDTH

    def bulge(self, link: tuple[int, int]) -> float:
        """Return how far the curve of a link is from the boxes."""
        return min(8 + 6 * abs(link[1] - link[0]), WIDTH - _BOX_LEFT - _BOX_WIDTH) * 4 / 3 - 2


def figure(pattern: Pattern, patterns: Mapping[str, Pattern]) -> Figure | None:
    """Return the picture of ``pattern``; None if it has no relations. ``patterns``: all that have names, by id."""
    boxes: list[Box] = []
    top = 1.0
    for each in pattern.get("related_patterns", []):
        id_ = each["id"]
        lines = textwrap.wrap(unwrap(patterns[id_]["name"]), _CHARACTERS) if id_ in patterns else []
        height = _LINE * (len(lines) + 1) + 10
        number = id_.rpartition("-")[2]
        boxes.append(Box(id_, number, each["relationship"], unwrap(each.get("why", "")), lines, top, height))
        top += height + _GAP
    if not boxes:
        return None
    links = [
        (first, second)
        for first, one in enumerate(boxes)
        for second, other in enumerate(boxes)
        if first < second and (_relates(one.id, other.id, patterns) or _relates(other.id, one.id, patterns))
    ]
    return Figure(boxes, links, max(top - _GAP + 1, 44), _description(pattern, boxes, links))


def _relates(id_: str, other: str, patterns: Mapping[str, Pattern]) -> bool:
    related = patterns[id_].get("related_patterns", []) if id_ in patterns else []
    return any(each["id"] == other for each in related)


def _description(pattern: Pattern, boxes: list[Box], links: list[tuple[int, int]]) -> str:
    """Return the text alternative."""
    named = "; ".join(f"{box.id}, {box.relationship}" for box in boxes)
    text = f"{pattern['id']} is connected to {named}."
    pairs = "; ".join(f"{boxes[one].id} and {boxes[other].id}" for one, other in links)
    return f"{text} Also connected with each other: {pairs}." if pairs else text
