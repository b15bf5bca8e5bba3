"""What the roles of a caller permit. In a pattern, ``*`` stands for any characters; a pattern matches a whole name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from tmkb.schema import template

KINDS = ("tools", "resources", "prompts")

Patterns = Mapping[str, Sequence[str]]  # kind → patterns
_ANY = None  # stands for any characters


class Step(NamedTuple):
    """A role that the caller could get with other scopes: what it grants, and the scopes."""

    patterns: Patterns
    scopes: tuple[str, ...]


class Permissions:
    """The tools, resources and prompts that a caller may use. Equal callers share one object."""

    def __init__(self, granted: Iterable[Patterns], steps: Sequence[Step] = ()) -> None:
        """Create the permissions.

        Args:
            granted: what each role of the caller grants.
            steps: roles that other scopes would add, best first.
        """
        self._patterns = _merge(granted)
        self._expressions = {kind: [re.compile(_expression(each)) for each in self._patterns[kind]] for kind in KINDS}
        self._steps = [(Permissions([step.patterns]), step.scopes) for step in steps]

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` permits the same."""
        return isinstance(other, Permissions) and self._patterns == other._patterns

    def __hash__(self) -> int:
        return hash(tuple(map(tuple, self._patterns.values())))

    def permits(self, kind: str, name: str) -> bool:
        """Return whether the caller may use the tool or prompt ``name``, or the resource with that URI.

        ``kind``: one of `KINDS`.
        """
        return any(expression.fullmatch(name) for expression in self._expressions[kind])

    def permits_some(self, uri_template: str, values: Mapping[str, str]) -> bool:
        """Return whether the caller may use a resource of ``uri_template``. ``values``: those of some variables.

        A variable is expanded as in RFC 6570, level 1.
        """
        text: list[str | None] = []
        for literal, name in template.parse(uri_template):
            text.append(literal)
            if name is not None:
                text.append(quote(values[name], safe="") if name in values else _ANY)
        return any(_overlap(pattern, text) for pattern in self._patterns["resources"])

    def missing_scopes(self, kind: str, name: str) -> tuple[str, ...]:
        """Return the scopes with which the caller could use ``name``; none if no scope helps."""
        return next((scopes for step, scopes in self._steps if step.permits(kind, name)), ())


def overlaps(pattern: str, uri_template: str) -> bool:
    """Return whether ``pattern`` matches some URI of ``uri_template``, or the URI, if it has no variables."""
    return Permissions([{"resources": [pattern]}]).permits_some(uri_template, {})


def _merge(granted: Iterable[Patterns]) -> dict[str, list[str]]:
    roles = [*granted]
    return {kind: [*dict.fromkeys(each for role in roles for each in role.get(kind, ()))] for kind in KINDS}


def _expression(pattern: str) -> str:
    """Return a regular expression that needs time in proportion to the length of the text, however many ``*``."""
    first, *rest = map(re.escape, pattern.split("*"))
    if not rest:
        return first
    return first + "".join(f"(?>(?s:.*?){each})" for each in rest[:-1] if each) + f"(?s:.*){rest[-1]}"


def _overlap(pattern: str, text: Iterable[str | None]) -> bool:
    """Return whether ``pattern`` matches the parts of ``text`` in a row, with some characters for each `_ANY`."""
    places = _passed(pattern, {0})  # in the pattern, after the parts so far
    for part in text:
        if part is _ANY and places:
            places = {*range(min(places), len(pattern) + 1)}
        for character in part or "":
            kept = {at for at in places if pattern[at : at + 1] == "*"}
            places = _passed(pattern, kept | {at + 1 for at in places - kept if pattern[at : at + 1] == character})
            if not places:
                return False
    return len(pattern) in places


def _passed(pattern: str, places: set[int]) -> set[int]:
    """Return ``places``, and those after each ``*`` there: it can stand for no character."""
    added = {at + 1 for at in places if pattern[at : at + 1] == "*"}
    return places if added <= places else _passed(pattern, places | added)
