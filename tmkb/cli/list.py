"""``tmkb list``: list the patterns."""

from __future__ import annotations

import argparse
import functools
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tmkb.cli import layout, loader, output, pages
from tmkb.knowledge import catalog, idioms, provenance, stacks
from tmkb.knowledge.pattern import Pattern
from tmkb.schema import hidden, metaschema
from tmkb.server import sources

COLUMNS = ("id", "tier", "severity", "language", "framework", "category")
HISTORY = ("version", "reviewed", "sources")
LAYOUTS = (  # minimum width of the terminal → columns, so that most rows are one line; pipes get the first
    (190, (*COLUMNS, *HISTORY, "proof", "attacks", "wrong_fixes", "name")),
    (140, (*COLUMNS, "proof", "name")),
    (105, ("id", "severity", "category", "name")),
    (60, ("id", "severity", "name")),
    (0, ("id", "name")),
)
FILTERS = ("tier", "severity", "category", *catalog.OF_CODE)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    for name in FILTERS:
        parser.add_argument(f"--{name}", metavar="NAME", help=f"only patterns of this {name}")
    sources.configure_patterns(parser)
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print a line for each pattern. Return 1 if none matches."""
    with output.progress("Reading the patterns"):
        patterns = loader.patterns_by_id(args.patterns)
        filters = _filters(args)
        unknown = _unknown(filters, patterns) if patterns else ""
        rows = [] if unknown else [_row(*each) for each in _passing(filters, patterns.values())]
    if patterns and not rows:  # without any pattern, stderr already reports the folder
        output.fail(unknown or "No pattern matches these filters. `tmkb list` without filters shows all.")
    if not rows and not args.json:
        return 1
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    columns = next(each for width, each in LAYOUTS if room is None or room >= width)
    cells = [[(_text(row[column]), _style(column, row)) for column in columns] for row in rows]
    output.write(args, rows, layout.table([column.replace("_", " ") for column in columns], cells))
    return 0 if rows else 1


def _row(folder: str, pattern: Pattern) -> dict[str, Any]:
    return {
        **{column: str(pattern.get(column)) for column in COLUMNS},
        **provenance.facts(folder, pattern),
        "name": pattern["name"],
    }


def _filters(args: argparse.Namespace) -> dict[str, str]:
    """Return the values of the filters that are given. The language or framework "any" is none."""
    given = {name: getattr(args, name) for name in FILTERS if getattr(args, name) is not None}
    return {name: value for name, value in given.items() if not catalog.is_any(name, value)}


def _passing(filters: Mapping[str, str], patterns: Iterable[tuple[str, Pattern]]) -> Iterator[tuple[str, Pattern]]:
    selected = stacks.packaged().selected(filters.get("language"), filters.get("framework"))
    for folder, pattern in patterns:
        if catalog.passes(pattern, filters, selected, functools.partial(_stacks, folder, pattern)):
            yield folder, pattern


def _unknown(filters: Mapping[str, str], patterns: Mapping[str, tuple[str, Pattern]]) -> str:
    """Return a sentence about the first filter that no pattern has, and that is no stack; an empty string without one.

    Patterns for any language or framework pass the name of each.
    """
    for name, value in filters.items():
        known = values(name, (pattern for _, pattern in patterns.values()))
        is_stack = name in catalog.OF_CODE and stacks.packaged().selected(**{name: value})
        if not is_stack and value.lower() not in map(str.lower, known):
            near = metaschema.near(value, known)
            hint = f"Did you mean '{near['nearest']}'?" if near["nearest"] else f"Known: {near['known']}."
            return f"No pattern has the {name} '{value}'. {hint}"
    return ""


def values(name: str, patterns: Iterable[Pattern]) -> list[str]:
    """Return the values of the filter ``name``, sorted: those of ``patterns``, and the stacks or their languages."""
    known = stacks.packaged()
    of_code = {"language": [*known.languages], "framework": known.frameworks}
    return sorted({*(str(pattern.get(name)) for pattern in patterns if name in pattern), *of_code.get(name, ())})


def _style(column: str, row: Mapping[str, Any]) -> str:
    return pages.STYLES[row["severity"]] if column == "severity" else ""


def _text(value: Any) -> str:
    """Return the text of a table cell; for sources, their number."""
    if value is None:
        return ""
    return str(len(value)) if isinstance(value, list) else hidden.line(str(value))


def _stacks(folder: str, pattern: Pattern) -> list[str]:
    """Return the stacks for which a pattern has code."""
    own = filter(None, [idioms.own_stack(pattern)])
    return [*own, *idioms.read(folder)[0], *pattern.get("house", {}).get("idioms", {})]
