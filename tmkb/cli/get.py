"""``tmkb get ID``: one pattern in full."""

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
    """Options of the command."""
    parser.add_argument("id", metavar="ID", help="the pattern's id, as TMKB-AUTH-007, or its number, as 7")
    parser.add_argument("--test", action="store_true", help="print tests to fill in, made of the pattern's proof")
    sources.configure_patterns(parser)
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the pattern, or tests made of its proof. 1 where there is none of that id, or no proof."""
    patterns = sources.patterns_by_id(args.patterns)
    meant = meant_ids(args.id.upper(), patterns)
    if len(meant) != 1:
        output.fail(f"There is no pattern {args.id or repr(args.id)}. {hint(args.id.upper(), meant, patterns)}")
        return 1
    folder, pattern = patterns[meant[0]]
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


def meant_ids(word: str, ids: Collection[str]) -> list[str]:
    """Return the ids that ``word`` means: an id, an id whose number lacks its zeros, or a number alone."""
    if word in ids:
        return [word]
    form = _NUMBERED.fullmatch(word)
    return [] if form is None else [id_ for id_ in _numbered(int(form[2]), ids) if form[1] in (None, _prefix(id_))]


def hint(word: str, meant: list[str], ids: Collection[str]) -> str:
    """Return what to try instead. A number that is there is right, and the prefix before it wrong."""
    form = _NUMBERED.fullmatch(word)
    same = _numbered(int(form[2]), ids) if form else []
    if near := ", ".join(meant) or metaschema.nearest(word, same if form else ids):
        return f"Did you mean {near}?"
    return "`tmkb list` shows all."


def _numbered(number: int, ids: Collection[str]) -> list[str]:
    return [id_ for id_ in ids if int(id_.rpartition("-")[2]) == number]


def _prefix(id_: str) -> str:
    return id_.rpartition("-")[0]


_NUMBERED = re.compile(r"(?:(.+)-)?([0-9]{1,9})")
