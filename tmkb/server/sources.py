"""Options and defaults for folders of schemas and patterns: flags, else the environment, else the packaged ones."""

from __future__ import annotations

import sys

from tmkb.errors import Problem
from tmkb.knowledge import provenance
from tmkb.knowledge.library import PACKAGED, Library
from tmkb.knowledge.library import load as load_library
from tmkb.protocol import arguments, outbound, requests
from tmkb.providers import registry
from tmkb.schema import paths, problems

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from tmkb.knowledge.pattern import Pattern
    from tmkb.schema.metaschema import Names


def configure_schemas(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--schemas``."""
    parser.add_argument(
        "--schemas",
        action="append",
        metavar="DIR",
        help="a folder looked through before the packaged schemas (repeatable; default: TMKB_SCHEMAS)",
    )


def configure_python(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--allow-python``."""
    parser.add_argument(
        "--allow-python", action="store_true", help="import the classes that a server's YAML names as providers"
    )


def configure_patterns(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--patterns``."""
    parser.add_argument(
        "--patterns",
        action="append",
        metavar="DIR",
        help="a folder of patterns, or `packaged` (repeatable; default: TMKB_PATTERNS, else packaged)",
    )


def names() -> Names:
    """Return the names that the code offers to schemas, by kind."""
    return {
        "handler": list(requests.HANDLERS),
        "coercion": list(arguments.COERCIONS),
        "result style": list(outbound.STYLES),
        "violation field": arguments.FIELDS,
        **registry.names(),
    }


def library(flags: Sequence[str] | None) -> Library:
    """Load patterns as `read_library` does, and print the problems of omitted ones to stderr."""
    patterns = read_library(flags)
    for problem in patterns.problems:
        sys.stderr.write(f"{problems.line(problem)}\n")
    for folder in patterns.missing + patterns.empty:
        sys.stderr.write(f"{problems.line(Problem('nothing_found', folder))}\n")
    return patterns


def patterns_by_id(flags: Sequence[str] | None) -> dict[str, tuple[str, Pattern]]:
    """Load patterns by id, each with its folder. Also print problems of recorded proofs to stderr."""
    patterns = {
        each.pattern["id"]: (each.path, each.pattern) for each in library(flags).folders if each.pattern is not None
    }
    for problem in provenance.problems(folder for folder, _ in patterns.values()):
        sys.stderr.write(f"{problems.line(problem)}\n")
    return dict(sorted(patterns.items()))


def read_library(flags: Sequence[str] | None) -> Library:
    """Load the patterns of ``flags``, else of ``TMKB_PATTERNS``, else the packaged ones."""
    return load_library(paths.named(flags, "TMKB_PATTERNS") or [PACKAGED])
