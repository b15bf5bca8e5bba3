"""``tmkb list``: what there is."""

from __future__ import annotations

import argparse

from tmkb.cli import output, sources
from tmkb.knowledge.pattern import Pattern

COLUMNS = ("id", "tier", "severity", "language", "framework", "category", "name")
FILTERS = ("tier", "severity", "category", "language", "framework")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    for name in FILTERS:
        parser.add_argument(f"--{name}", metavar="NAME", help=f"only patterns of this {name}")
    sources.configure_patterns(parser)
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print a line for each pattern. 1 where there is none."""
    patterns = [p for p in sources.library(args.patterns).patterns if _passes(args, p)]
    rows = [{column: str(pattern.get(column)) for column in COLUMNS} for pattern in patterns]
    if not rows and not args.json:
        output.fail("No pattern.")
        return 1
    output.write(args, rows, output.table(COLUMNS, [list(row.values()) for row in rows]))
    return 0 if rows else 1


def _passes(args: argparse.Namespace, pattern: Pattern) -> bool:
    wanted = {name: getattr(args, name) for name in FILTERS if getattr(args, name) is not None}
    return all(str(pattern.get(name)).lower() in (value.lower(), "any") for name, value in wanted.items())
