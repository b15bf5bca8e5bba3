"""``tmkb validate``: report every problem of patterns with its position."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator

from tmkb.authoring import gates, inputs, lint
from tmkb.cli import output
from tmkb.errors import Problem
from tmkb.knowledge import attacks, idioms, library, mappings, pattern, questions, reminders, stacks, vocabulary
from tmkb.knowledge.library import Library
from tmkb.knowledge.retrieval import signs
from tmkb.publishing import semgrep
from tmkb.schema import metaschema, packed, paths
from tmkb.schema import problems as words
from tmkb.server import sources

_PATTERN = "pattern.yaml"
_PACKAGED_ONLY = (mappings.FILE, reminders.FILE, signs.FILE, stacks.FILE)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="a folder of patterns, one pattern's folder, or its pattern.yaml"
    )
    parser.add_argument("--strict", action="store_true", help="also apply the quality standard of packaged patterns")
    sources.configure_patterns(parser)
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the problems. Return 1 if there are any."""
    with output.progress("Reading the patterns") as show:
        count, problems, outdated = _check(args, show)
    for problem in outdated:
        output.fail(words.line(problem))
    counted = f"{count} patterns" if count != 1 else "1 pattern"
    text = output.problem_lines(problems) or f"{counted}, no problems."
    output.write(args, {"patterns": count, "problems": output.problem_values(problems)}, text)
    return 1 if problems else 0


def _check(args: argparse.Namespace, show: Callable[[str], None]) -> tuple[int, list[Problem], list[Problem]]:
    """Return the number of patterns, the problems, and what is only reported: models that are outdated."""
    names = sources.folders([_folder(path) for path in args.paths] or args.patterns, output.note)
    library_ = library.load(names)
    known = {pattern["id"] for pattern in library_.patterns + library.load([library.PACKAGED]).patterns}
    problems = library_.absent
    problems += library_.unreadable
    problems += [problem for folder in library.resolve(names) for problem in _unread(folder)]
    for number, each in enumerate(library_.folders, 1):
        show(f"Checking {number} of {len(library_.folders)}: {os.path.basename(each.path)}")
        problems += [*each.problems, *pattern.review(each, known), *idioms.read(each.path)[1]]
        problems += semgrep.read(each.path)[1]
    show("Checking the quality standard")
    problems += _strict(library_) if args.strict else []
    show("Checking the example questions")
    folders = library.resolve(names)
    examples = questions.by_file(folders)
    problems += questions.review(examples, known) + inputs.damaged(folders)
    outdated = inputs.outdated(folders, library_.patterns, [q for each in examples.values() for q in each.questions])
    count = len(library_.patterns)
    return (count, problems + outdated, []) if args.strict else (count, problems, outdated)


def _unread(path: str) -> Iterator[Problem]:
    """Report what the author of the patterns in ``path`` may expect to be read, and is not.

    Those are folders that look like patterns, and files of which only the packaged one counts.
    """
    if path == paths.PATTERNS or packed.exists(os.path.join(path, _PATTERN)):
        return
    for name in _names(path):
        inside = os.path.join(path, name)
        if name in _PACKAGED_ONLY:
            yield Problem("packaged_only", paths.shown(inside), name=name)
        if name.startswith(("_", ".")) or packed.exists(os.path.join(inside, _PATTERN)):
            continue
        files = _names(inside)
        misspelt = [file for file in files if metaschema.alike(file.lower(), [_PATTERN])]
        if found := [*misspelt, *(file for file in files if file in (attacks.NAME, idioms.NAME))]:
            yield Problem("no_pattern_file", paths.shown(inside), name=found[0])


def _names(path: str) -> list[str]:
    """Return the names in a folder; none if it is no folder or cannot be read, which others report."""
    try:
        return packed.names(path) if packed.is_folder(path) else []
    except OSError:
        return []


def _strict(library_: Library) -> list[Problem]:
    """Return the violations of the quality standard of packaged patterns."""
    collections = library.collections(library_)
    shared = vocabulary.read(collections)
    folders = [each.path for each in library_.folders if each.pattern is not None]
    problems = shared.problems
    for each in library_.folders:
        problems += gates.review(each, collections[os.path.dirname(each.path)], shared)
    for folder in folders:
        problems += lint.unused(folder)
    if program := lint.find_ruff():
        on_disk = [*filter(os.path.isdir, folders)]  # packed patterns of a wheel were checked in the checkout
        return problems + (lint.run_ruff(program, on_disk) if on_disk else [])
    output.fail(words.sentence(Problem("not_linted", "", reason="ruff is not installed", command=lint.ruff_command())))
    return problems


def _folder(path: str) -> str:
    return os.path.dirname(path) or "." if os.path.basename(path) == _PATTERN else path
