"""``tmkb get ID``: show one pattern in full."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Collection

from tmkb.authoring import skeleton
from tmkb.cli import output, pages
from tmkb.knowledge import answer, provenance, vocabulary
from tmkb.schema import hidden, metaschema
from tmkb.server import sources


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "id", metavar="ID", help="the pattern's id, for example TMKB-AUTH-007, or its number, for example 7"
    )
    parser.add_argument("--test", action="store_true", help="print a test skeleton made from the pattern's proof")
    sources.configure_patterns(parser)
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the pattern or a test skeleton. Return 1 if the id is unknown or the pattern has no proof."""
    patterns = sources.placed(args.patterns)
    ids = matching(args.id.upper(), patterns)
    if len(ids) != 1:
        output.fail(f"There is no pattern {args.id or repr(args.id)}. {hint(args.id.upper(), ids, patterns)}")
        return 1
    folder, pattern = patterns[ids[0]]
    facts = {"provenance": provenance.facts(folder, pattern)}
    if not args.test:
        titles = vocabulary.read(os.path.dirname(each) for each, _ in patterns.values()).titles
        output.write(args, pattern | facts, pages.page(answer.in_full(pattern) | facts, titles))
        return 0
    text = skeleton.tests(folder, pattern)
    if text is None:
        missing = "proof" if "code" in pattern else "code"
        output.fail(f"{pattern['id']} has no {missing} to make tests from.")
        return 1
    if args.json:
        output.write(args, pattern | facts | {"test": text}, "")
    else:  # no colour and no wrapping, so that it can be saved
        sys.stdout.write(hidden.escape(text))
    return 0


def matching(word: str, ids: Collection[str]) -> list[str]:
    """Return the ids that match ``word``: an id, an id without leading zeros, or a number."""
    if word in ids:
        return [word]
    form = _NUMBERED.fullmatch(word)
    return [] if form is None else [id_ for id_ in _numbered(int(form[2]), ids) if form[1] in (None, _prefix(id_))]


def hint(word: str, matching: list[str], ids: Collection[str]) -> str:
    """Return a suggestion. If the number exists, the prefix is taken to be wrong."""
    form = _NUMBERED.fullmatch(word)
    same = _numbered(int(form[2]), ids) if form else []
    if near := ", ".join(matching) or metaschema.nearest(word, same if form else ids):
        return f"Did you mean {near}?"
    return "See `tmkb list`."


def _numbered(number: int, ids: Collection[str]) -> list[str]:
    return [id_ for id_ in ids if int(id_.rpartition("-")[2]) == number]


def _prefix(id_: str) -> str:
    return id_.rpartition("-")[0]


_NUMBERED = re.compile(r"(?:(.+)-)?([0-9]{1,9})")
