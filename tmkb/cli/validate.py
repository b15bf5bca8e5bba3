"""``tmkb validate``: everything that is wrong with patterns, each with its place."""

from __future__ import annotations

import argparse
import os

from tmkb.authoring import code, gates
from tmkb.cli import output
from tmkb.errors import Problem
from tmkb.knowledge import library, quality, vocabulary
from tmkb.knowledge.library import Library
from tmkb.knowledge.retrieval import lexicon
from tmkb.schema import paths
from tmkb.schema import problems as words
from tmkb.server import sources


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="a folder of patterns, one pattern's folder, or its pattern.yaml"
    )
    parser.add_argument("--strict", action="store_true", help="also ask for what packaged patterns have to be")
    sources.configure_patterns(parser)
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the problems. 1 where there is any."""
    found = sources.read_library([_folder(path) for path in args.paths] or args.patterns)
    known = {pattern["id"] for pattern in found.patterns + library.load([library.PACKAGED]).patterns}
    problems = [Problem("nothing_found", folder) for folder in found.missing + found.empty]
    for each in found.found:
        problems += [*each.problems, *quality.review(each, known)]
    problems += _strict(found) if args.strict else []
    for folder in library.folders(
        [_folder(path) for path in args.paths] or paths.named(args.patterns, "TMKB_PATTERNS")
    ):
        if os.path.isdir(beside := os.path.join(folder, lexicon.FOLDER)):
            problems += lexicon.review(beside)
    count = len(found.patterns)
    said = f"{count} patterns" if count != 1 else "1 pattern"
    text = output.problem_lines(problems) or f"{said}, no problems."
    output.write(args, {"patterns": count, "problems": output.problem_values(problems)}, text)
    return 1 if problems else 0


def _strict(found: Library) -> list[Problem]:
    """What keeps the patterns that can be served from the standard of the packaged ones."""
    collections = library.collections(found)
    shared = vocabulary.read(collections)
    folders = [each.folder for each in found.found if each.pattern is not None]
    problems = shared.problems
    for each in found.found:
        problems += gates.review(each, collections[os.path.dirname(each.folder)], shared)
    for folder in folders:
        problems += code.review(folder)
    if program := code.ruff():
        return problems + (code.lint(program, folders) if folders else [])
    output.fail(words.sentence(Problem("not_linted", "", reason="ruff is not installed")))
    return problems


def _folder(path: str) -> str:
    return os.path.dirname(path) or "." if os.path.basename(path) == "pattern.yaml" else path
