"""``tmkb questions``: add example questions to patterns."""

from __future__ import annotations

import argparse

from tmkb.authoring import collection
from tmkb.cli import layout, loader, output
from tmkb.schema import paths


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    add = kinds.add_parser(
        "add",
        help="add the questions of a JSON Lines file to the patterns that they grade best",
        description="Add the questions of a JSON Lines file to the patterns that they grade best. Invalid lines and "
        "near-duplicates are left out.",
    )
    add.add_argument(
        "file", metavar="FILE", help="lines with context, kind, language and relevant (pattern id → grade)"
    )
    add.add_argument(
        "--author", required=True, metavar="NAME", help="lower case; authors are held out to measure quality"
    )
    add.add_argument(
        "--dir", default=paths.PATTERNS, metavar="DIR", help="the folder of the patterns (default: packaged)"
    )
    output.configure(add)


def run(args: argparse.Namespace) -> int:
    """Write the files. Return 1 if lines were left out, 2 if a file cannot be read or written."""
    known = {pattern["id"] for pattern in loader.library([args.dir]).patterns}
    try:
        with open(args.file, encoding="utf-8") as file:
            given = [*filter(str.strip, file)]
    except (OSError, ValueError) as error:
        return output.cannot_read(args.file, error)
    try:
        added, refused = collection.add(given, args.author, args.dir, known)
    except OSError as error:
        output.fail(f"cannot write {paths.shown(str(error.filename))}: {error.strerror}")
        return 2
    except ValueError as error:
        output.fail(str(error))
        return 2
    lines = [line for sentence in refused for line in layout.text(f"Left out: {sentence}")]
    output.write(args, {"added": added, "refused": refused}, lines + layout.text(f"{added} questions added."))
    return 1 if refused else 0
