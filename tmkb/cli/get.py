"""``tmkb get ID``: one pattern in full."""

from __future__ import annotations

import argparse

from tmkb import metaschema
from tmkb.cli import output, pages, sources
from tmkb.knowledge import answer


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("id", metavar="ID", help="the pattern's id, as in TMKB-AUTH-001")
    sources.configure_patterns(parser)
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the pattern. 1 where there is none of that id."""
    patterns = {pattern["id"]: pattern for pattern in sources.library(args.patterns).patterns}
    if (pattern := patterns.get(args.id.upper())) is None:
        near = metaschema.nearest(args.id, list(patterns))
        output.fail(f"There is no pattern {args.id}." + (f" Did you mean {near}?" if near else ""))
        return 1
    output.write(args, pattern, pages.page(answer.in_full(pattern)))
    return 0
