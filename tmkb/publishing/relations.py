"""The patterns that a pattern names as related, and which of them are related to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from tmkb.knowledge.answer import unwrap
from tmkb.knowledge.pattern import Pattern


class Related(NamedTuple):
    """A related pattern."""

    id: str
    relationship: str
    why: str


def related(pattern: Pattern) -> list[Related]:
    """Return the patterns that ``pattern`` names, in its order."""
    return [
        Related(each["id"], each["relationship"], unwrap(each.get("why", "")))
        for each in pattern.get("related_patterns", [])
    ]


def pairs(found: Sequence[Related], patterns: Mapping[str, Pattern]) -> list[tuple[str, str]]:
    """Return the ids of those of ``found`` that are related to each other. ``patterns``: all that are known, by id."""
    return [
        (one.id, other.id)
        for one, other in combinations(found, 2)
        if _relates(one.id, other.id, patterns) or _relates(other.id, one.id, patterns)
    ]


def _relates(id_: str, other: str, patterns: Mapping[str, Pattern]) -> bool:
    return id_ in patterns and other in (each.id for each in related(patterns[id_]))
