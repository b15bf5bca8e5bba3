"""Explain syntax errors of the YAML parser: where the mistake is, and which rule of ``problems.yaml`` names the fix.

The parser reports where it gave up, which is often lines after the mistake. libyaml and PyYAML word their errors
differently; both wordings are recognized.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import yaml

# Character at a syntax error → the rule with the fix.
_CHARACTERS = {":": "stray_colon", "@": "reserved", "`": "reserved", "%": "reserved"}
_CURLY = re.compile("[\u201c\u201d\u201e\u2018\u2019]")
_ESCAPE = re.compile(r"escape|hexa?decimal")
_NO_KEY = ("did not find expected key", "expected <block end>", "did not find expected '-'")


class Place(NamedTuple):
    """A line and a column, counted from 0."""

    line: int
    column: int


@dataclass(frozen=True)
class _Failure:
    """What the parser reports."""

    text: str
    context: str
    problem: str
    start: Place  # of what it was reading
    place: Place  # where it gave up
    last: yaml.ScalarEvent | None  # the scalar that was read last
    last_start: Place
    last_end: Place

    def line(self, place: Place) -> str:
        """Return the line of ``place``."""
        lines = self.text.split("\n")
        return lines[place.line] if place.line < len(lines) else ""

    def before(self, place: Place) -> str:
        """Return what is before ``place`` in its line, without spaces at both ends."""
        return self.line(place)[: place.column].strip()

    def at(self, place: Place) -> str:
        """Return the character at ``place``; an empty string at the end of a line."""
        return self.line(place)[place.column : place.column + 1]

    @property
    def curly(self) -> Place:
        """The first curly quote in the line."""
        quote = _CURLY.search(self.line(self.place))
        return Place(self.place.line, quote.start()) if quote else self.place

    @property
    def is_after_quotes(self) -> bool:
        """Whether the last scalar is quoted and ends in this line, before this place."""
        is_quoted = self.last is not None and self.last.style in ("'", '"')
        return is_quoted and self.place.line == self.last_end.line and self.place.column >= self.last_end.column

    @property
    def is_second_colon(self) -> bool:
        """Whether the place is a colon after an unquoted text."""
        return "mapping values" in self.problem and self.last is not None

    @property
    def is_long(self) -> bool:
        """Whether the last scalar has several lines."""
        return self.last_start.line < self.last_end.line


# Rule, when it applies, and where the mistake is. The first that applies is reported.
_Rule = tuple[str, Callable[[_Failure], bool], Callable[[_Failure], Place]]
_RULES: tuple[_Rule, ...] = (
    ("too_deep", lambda f: "nesting depth" in f.problem, lambda f: f.place),
    ("tab", lambda f: f.at(f.place) == "\t", lambda f: f.place),
    ("curly_quotes", lambda f: f.curly != f.place or bool(_CURLY.match(f.at(f.place))), lambda f: f.curly),
    ("missing_colon", lambda f: "simple key" in f.context and "expected ':'" in f.problem, lambda f: f.start),
    ("open_quote", lambda f: "scalar" in f.context and "end of stream" in f.problem, lambda f: f.start),
    ("bad_escape", lambda f: bool(_ESCAPE.search(f.problem)), lambda f: f.place),
    ("open_quote", lambda f: f.is_after_quotes and f.is_long, lambda f: f.last_start),
    ("after_quote", lambda f: f.is_after_quotes, lambda f: f.place),
    ("open_bracket", lambda f: "flow" in f.context and f.at(f.start) in ("[", "{"), lambda f: f.start),
    ("colon_in_text", lambda f: f.is_second_colon and not f.is_long, lambda f: f.place),
    ("missing_colon", lambda f: f.is_second_colon and not f.before(f.last_start), lambda f: f.last_start),
    ("stray_dash", lambda f: "sequence entries" in f.problem, lambda f: f.place),
    ("bad_indentation", lambda f: f.problem.startswith(_NO_KEY) and not f.before(f.place), lambda f: f.place),
)


def explain(error: yaml.MarkedYAMLError, text: str, last: yaml.Event | None) -> tuple[str, Place, dict[str, str]]:
    """Return the rule, the place of the mistake in ``text``, and the fields of the problem.

    ``last``: the scalar that was read last; None if there is none.
    """
    scalar = last if isinstance(last, yaml.ScalarEvent) else None
    place = _place(error.problem_mark or error.context_mark)
    failure = _Failure(
        text,
        error.context or "",
        error.problem or "",
        _place(error.context_mark or error.problem_mark),
        place,
        scalar,
        _place(scalar and scalar.start_mark),
        _place(scalar and scalar.end_mark),
    )
    reason = ", ".join(part for part in (failure.context, failure.problem) if part)
    for rule, applies, where in _RULES:
        if applies(failure):
            found = where(failure)
            shown = failure.line(found).strip() if rule == "missing_colon" else failure.at(found)
            return rule, found, {"text": shown, "reason": reason}
    char = failure.at(place)
    rule = "syntax" if failure.context.startswith("while parsing") else _CHARACTERS.get(char, "syntax")
    return rule, place, {"text": char, "reason": reason}


def _place(mark: Any) -> Place:
    """Return the place of a mark of either parser; the start without a mark."""
    return Place(mark.line, mark.column) if mark else Place(0, 0)
