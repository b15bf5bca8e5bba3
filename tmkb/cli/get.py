"""``tmkb get ID``: show one pattern in full."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Collection, Iterable

from tmkb.authoring import application_tests
from tmkb.cli import output, pages
from tmkb.knowledge import answer, provenance, vocabulary
from tmkb.schema import hidden
from tmkb.server import sources


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "id", metavar="ID", help="the pattern's id, for example TMKB-AUTH-007, or its number, for example 7"
    )
    parser.add_argument(
        "--test",
        action="store_true",
        help="print pytest tests of your application",
    )
    sources.configure_patterns(parser)
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the pattern or tests. Return 1 if the id is unknown or the pattern has no attacks."""
    patterns = sources.patterns_by_id(args.patterns)
    if (ids := existing([args.id], patterns)) is None:
        return 1
    folder, pattern = patterns[ids[0]]
    facts = {"provenance": provenance.facts(folder, pattern)}
    if not args.test:
        titles = vocabulary.read(os.path.dirname(each) for each, _ in patterns.values()).titles
        output.write(args, pattern | facts, pages.page(answer.in_full(pattern) | facts, titles))
        return 0
    text = application_tests.tests(folder, pattern)
    if text is None:
        output.fail(f"{pattern['id']} has no attacks.yaml to make tests from.")
        return 1
    if args.json:
        output.write(args, pattern | facts | {"test": text}, "")
    else:  # no colour and no wrapping, so that it can be saved
        sys.stdout.write(hidden.escape(text))
    return 0


def existing(words: Iterable[str], ids: Collection[str]) -> list[str] | None:
    """Return the id that each of ``words`` names: an id, an id without leading zeros, or a number.

    Return None, with messages on stderr, if a word names none or several.
    """
    matches = {word: _matching(word.upper(), ids) for word in words}
    for word, (matching, similar) in matches.items():
        if len(matching) != 1:
            hint = f"Did you mean {', '.join(matching)}?" if matching else ""
            hint = hint or output.did_you_mean(word.upper(), similar, "See `tmkb list`.")
            output.fail(f"There is no pattern {word or repr(word)}. {hint}")
    if any(len(matching) != 1 for matching, _ in matches.values()):
        return None
    return [matching[0] for matching, _ in matches.values()]


def _matching(word: str, ids: Collection[str]) -> tuple[list[str], Collection[str]]:
    """Return the ids that match ``word``, and those it may be a misspelling of: if its number exists, of the prefix."""
    form = _NUMBERED.fullmatch(word)
    if word in ids or form is None:
        return [word] * (word in ids), ids
    same_number = [id_ for id_ in ids if int(id_.rpartition("-")[2]) == int(form[2])]
    return [id_ for id_ in same_number if form[1] in (None, id_.rpartition("-")[0])], same_number


_NUMBERED = re.compile(r"(?:(.+)-)?([0-9]{1,9})")
