"""``tmkb validate``: everything that is wrong with patterns, each with its place."""

from __future__ import annotations

import argparse
import os

from tmkb.cli import output, sources
from tmkb.errors import Problem
from tmkb.knowledge import library, quality


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="a folder of patterns, one pattern's folder, or its pattern.yaml"
    )
    sources.configure_patterns(parser)
    output.configure(parser)


def run(args: argparse.Namespace) -> int:
    """Print the problems. 1 where there is any."""
    found = sources.read_library([_folder(path) for path in args.paths] or args.patterns)
    known = {pattern["id"] for pattern in found.patterns + library.load([library.PACKAGED]).patterns}
    problems = [Problem("nothing_found", folder) for folder in found.missing + found.empty]
    for each in found.found:
        problems += [*each.problems, *quality.review(each, known)]
    count = len(found.patterns)
    said = f"{count} patterns" if count != 1 else "1 pattern"
    text = output.problem_lines(problems) or f"{said}, no problems."
    output.write(args, {"patterns": count, "problems": output.problem_values(problems)}, text)
    return 1 if problems else 0


def _folder(path: str) -> str:
    return os.path.dirname(path) or "." if os.path.basename(path) == "pattern.yaml" else path
