"""Load patterns for a command, and print the problems of those that are left out."""

from __future__ import annotations

from collections.abc import Sequence

from tmkb.cli import output
from tmkb.knowledge import provenance
from tmkb.knowledge.library import Library
from tmkb.knowledge.pattern import Pattern
from tmkb.schema import problems
from tmkb.server import sources


def library(flags: Sequence[str] | None) -> Library:
    """Load patterns as `sources.read_library` does, and print the problems of omitted ones to stderr."""
    found = sources.read_library(flags, output.note)
    for problem in found.problems + found.absent:
        output.note(problems.line(problem))
    return found


def patterns_by_id(flags: Sequence[str] | None) -> dict[str, tuple[str, Pattern]]:
    """Load patterns by id, each with its folder. Also print problems of recorded proofs to stderr."""
    patterns = {
        each.pattern["id"]: (each.path, each.pattern) for each in library(flags).folders if each.pattern is not None
    }
    for problem in provenance.problems(folder for folder, _ in patterns.values()):
        output.note(problems.line(problem))
    return dict(sorted(patterns.items()))
