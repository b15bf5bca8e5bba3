"""``tmkb get ID``: one pattern in full."""

from __future__ import annotations

import argparse
import os
import sys

from tmkb import hidden, metaschema
from tmkb.cli import output, pages, sources
from tmkb.knowledge import answer, provenance, skeleton, vocabulary


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("id", metavar="ID", help="the pattern's id, as in TMKB-AUTH-001")
    parser.add_argument("--test", action="store_true", help="print tests to fill in, made of the pattern's proof")
    sources.configure_patterns(parser)
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the pattern, or tests made of its proof. 1 where there is none of that id, or no proof."""
    patterns = sources.placed(args.patterns)
    if (found := patterns.get(args.id.upper())) is None:
        near = metaschema.nearest(args.id, list(patterns))
        output.fail(f"There is no pattern {args.id}." + (f" Did you mean {near}?" if near else ""))
        return 1
    folder, pattern = found
    facts = {"provenance": provenance.facts(folder, pattern)}
    if not args.test:
        titles = vocabulary.read(os.path.dirname(each) for each, _ in patterns.values()).titles
        output.write(args, pattern | facts, pages.page(answer.in_full(pattern) | facts, titles))
        return 0
    text = skeleton.tests(folder, pattern)
    if text is None:
        lacks = "proof" if "code" in pattern else "code"
        output.fail(f"{pattern['id']} has no {lacks}, so there is nothing to make tests of.")
        return 1
    if args.json:
        output.write(args, pattern | facts | {"test": text}, "")
    else:  # neither coloured nor wrapped, so that it can be saved
        sys.stdout.write(hidden.escape(text))
    return 0
