"""Options and defaults for folders of schemas and patterns: flags, else the environment, else the packaged ones."""

from __future__ import annotations

from tmkb.knowledge.library import PACKAGED, Library
from tmkb.knowledge.library import load as load_library
from tmkb.protocol import arguments, outbound, requests
from tmkb.providers import registry
from tmkb.schema import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

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


def read_library(flags: Sequence[str] | None) -> Library:
    """Load the patterns of ``flags``, else of ``TMKB_PATTERNS``, else the packaged ones."""
    return load_library(paths.named(flags, "TMKB_PATTERNS") or [PACKAGED])
