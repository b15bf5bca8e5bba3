"""``tmkb get ID``: show one pattern in full."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from tmkb.authoring import application_tests
from tmkb.cli import loader, output, pages
from tmkb.knowledge import advice, answer, house, idioms, ids, library, pattern, provenance, stacks, vocabulary
from tmkb.knowledge.pattern import Pattern
from tmkb.schema import hidden
from tmkb.server import sources


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "id",
        metavar="ID",
        help="the pattern's id, for example TMKB-AUTH-007, or its last parts, for example 7 or auth-7",
    )
    parser.add_argument(
        "--test",
        action="store_true",
        help="print pytest tests of your application",
    )
    parser.add_argument("--framework", metavar="NAME", help="also show the fix for this framework or platform")
    sources.configure_patterns(parser)
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the pattern or tests. Return 1 if the id or the framework is unknown, or the pattern has no attacks."""
    with output.progress("Reading the patterns"):
        folders = library.resolve(sources.folders(args.patterns, output.note))
        only = None if any(map(house.exists, folders)) else _folder(args.id, folders)
        patterns = loader.patterns_by_id([only] if only else args.patterns)
    if (found_ids := existing([args.id], patterns)) is None:
        return 1
    folder, found = patterns[found_ids[0]]
    facts = {"provenance": provenance.facts(folder, found)}
    if not args.test:
        titles = vocabulary.read(os.path.dirname(each) for each, _ in patterns.values()).titles
        fixes = idioms.served(folder, found)
        frameworks = [stack for stack in stacks.packaged().frameworks if stack in fixes]
        fix = _fix(args.framework, found, fixes) if args.framework else {}
        if args.framework and not fix:
            hint = output.did_you_mean(args.framework, frameworks, f"Known: {', '.join(frameworks) or 'none'}.")
            output.fail(f"{found['id']} has no fix for '{args.framework}'. {hint}")
            return 1
        shown = answer.in_full(found) | facts | fix | {"frameworks": frameworks}
        output.write(args, found | facts | fix | {"idioms": fixes}, pages.page(shown, titles))
        return 0
    text = application_tests.tests(folder, found)
    if text is None:
        output.fail(f"{found['id']} has no attacks.yaml to make tests from.")
        return 1
    if args.json:
        output.write(args, found | facts | {"test": text}, "")
    else:  # no colour and no wrapping, so that it can be saved
        sys.stdout.write(hidden.escape(text))
    return 0


def _fix(framework: str, found: Pattern, fixes: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Return the fix for ``framework`` under the keys of `tmkb_get`; none without one."""
    known = stacks.packaged()
    stack, note = known.nearest(framework, fixes)
    if stack is None:
        return {}
    code = advice.shown_code(known.stacks.get(stack, found)["language"], stack, fixes[stack])
    return {"code_pattern": code, **({"note": note} if note else {})}


def _folder(word: str, folders: Iterable[str]) -> str | None:
    """Return the folder of the pattern that ``word`` names; None if all must be read, for example for a message.

    The name of a pattern's folder is its id, so one pattern can be shown without the seconds of reading all.
    """
    by_id: dict[str, str] = {}
    try:
        for path in (path for folder in folders for path in library.pattern_folders(folder)):
            if _FOLDER.fullmatch(name := os.path.basename(path)):
                by_id.setdefault(name.upper().replace("_", "-"), path)
    except OSError:
        return None
    matching, _ = ids.matching(word, by_id)
    if len(matching) != 1:
        return None
    found = pattern.read(by_id[matching[0]])
    return found.path if found.pattern is not None and not found.problems else None


def existing(words: Iterable[str], known: Collection[str]) -> list[str] | None:
    """Return the id that each of ``words`` names: an id, or its last parts or number without leading zeros.

    Return None, with messages on stderr, if a word names none or several.
    """
    matches = {word: ids.matching(word, known) for word in words}
    for word, (matching, similar) in matches.items():
        if len(matching) != 1:
            hint = f"Did you mean {', '.join(matching)}?" if matching else ""
            hint = hint or output.did_you_mean(word.upper(), similar, "See `tmkb list`.")
            output.fail(f"There is no pattern {word or repr(word)}. {hint}")
    if any(len(matching) != 1 for matching, _ in matches.values()):
        return None
    return [matching[0] for matching, _ in matches.values()]


_FOLDER = re.compile(r"[a-z][a-z0-9_]*_[0-9]{1,9}")
