"""Options and defaults for folders of schemas and patterns: flags, else the environment, else the packaged ones."""

from __future__ import annotations

from tmkb.errors import Problem, SpecError
from tmkb.knowledge.library import PACKAGED, Library
from tmkb.knowledge.library import load as load_library
from tmkb.protocol import arguments, outbound, requests
from tmkb.providers import registry
from tmkb.schema import paths
from tmkb.server import selection

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from tmkb.schema.metaschema import Names
    from tmkb.server import cache
    from tmkb.server.selection import Selection


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
        metavar="SOURCE",
        help="a folder of patterns, git+https://HOST/PATH#REF, or `packaged` (repeatable; default: TMKB_PATTERNS, "
        "else packaged)",
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


def folders(flags: Sequence[str] | None, note: Callable[[str], None]) -> list[str]:
    """Return the folders of ``flags``, else of ``TMKB_PATTERNS``, else "packaged"; Git sources are pulled.

    ``note`` receives a sentence for each source that cannot be pulled now. Raises SpecError if it never was.
    """
    names: list[str] = paths.named(flags, "TMKB_PATTERNS") or [PACKAGED]
    selected = selection.of({"": {"patterns": [*names]}}, False)
    if not selected.sources:
        return names
    from tmkb.server import pull

    served, _, lines = pull.start(selected, _problems, pull.FRESH)
    for sentence in pull.sentences(lines):
        note(sentence)
    return [str(name) for name in served.folders("")]


def require_folders(flags: Sequence[str] | None) -> None:
    """Raise SpecError if ``flags`` or ``TMKB_PATTERNS`` name a Git source: the command runs code or writes files."""
    named = filter(selection.is_source, paths.named(flags, "TMKB_PATTERNS"))
    if wrong := [Problem.of_argument("folders_only", name) for name in named]:
        raise SpecError(wrong)


def _problems(selected: Selection) -> dict[str, cache.Entry]:
    """Return an entry that has only warnings: the problems of the patterns."""
    from tmkb.schema import problems
    from tmkb.server import cache

    found = load_library(selected.folders("")).problems
    return {"": cache.entry({"warnings": [["problem", {"problem": problems.line(each)}] for each in found]}, {})}


def read_library(flags: Sequence[str] | None, note: Callable[[str], None]) -> Library:
    """Load the patterns of `folders`."""
    return load_library(folders(flags, note))
