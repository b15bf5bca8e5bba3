"""Where schemas and patterns come from: flags first, then the environment, then what is packaged."""

from __future__ import annotations

import os
import sys

from tmkb import problems
from tmkb.engine import dispatch, reading, validation
from tmkb.errors import Problem
from tmkb.knowledge.library import PACKAGED, Library
from tmkb.knowledge.library import load as load_library
from tmkb.providers import registry
from tmkb.spec import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from tmkb.metaschema import Names
    from tmkb.spec.model import Spec

DEFAULT_SERVER = "tmkb"


def configure_schemas(parser: argparse.ArgumentParser) -> None:
    """Add the option that names folders of schemas."""
    parser.add_argument(
        "--schemas",
        action="append",
        metavar="DIR",
        help="a folder looked through before the packaged schemas (repeatable; default: TMKB_SCHEMAS)",
    )


def configure_patterns(parser: argparse.ArgumentParser) -> None:
    """Add the option that names folders of patterns."""
    parser.add_argument(
        "--patterns",
        action="append",
        metavar="DIR",
        help="a folder of patterns, or `packaged` (repeatable; default: TMKB_PATTERNS, else packaged)",
    )


def folders(flags: Sequence[str] | None, variable: str) -> list[str]:
    """The folders that are named by flags, else by the environment variable; empty where neither names any."""
    if flags:
        return list(flags)
    return [folder for folder in os.environ.get(variable, "").split(os.pathsep) if folder]


def spec(server: str, flags: Sequence[str] | None) -> Spec:
    """The checked Spec of ``server``. Raises SpecError."""
    return load.load(server, folders(flags, "TMKB_SCHEMAS"), names())


def names() -> Names:
    """What the code offers to the schemas, by kind."""
    return {
        "handler": list(dispatch.HANDLERS),
        "reading": list(reading.READINGS),
        "violation field": validation.FIELDS,
        **registry.names(),
    }


def providers(spec: Spec, patterns: Sequence[str] | None) -> dict[str, registry.Provider]:
    """The opened providers of a server; the folders of patterns go to the one that reads them."""
    opened = {}
    for name, settings in spec["server"].get("providers", {}).items():
        chosen = folders(patterns, "TMKB_PATTERNS") if name == "knowledge" else []
        opened[name] = registry.open_provider(name, settings | ({"folders": [*chosen]} if chosen else {}))
    return opened


def library(flags: Sequence[str] | None) -> Library:
    """The patterns that flags or the environment name, or the packaged ones; what is left out is said on stderr."""
    found = read_library(flags)
    for problem in found.problems:
        sys.stderr.write(f"{problems.line(problem)}\n")
    for folder in found.missing + found.empty:
        sys.stderr.write(f"{problems.line(Problem('nothing_found', folder))}\n")
    return found


def read_library(flags: Sequence[str] | None) -> Library:
    """The same, with nothing said."""
    return load_library(folders(flags, "TMKB_PATTERNS") or [PACKAGED])
