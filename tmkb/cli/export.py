"""``tmkb export``: write patterns in the formats of other tools."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import Any

from tmkb.cli import get, output
from tmkb.knowledge.pattern import Pattern
from tmkb.publishing import agents_md, folder
from tmkb.schema import hidden, paths
from tmkb.server import sources

# Format → help. The module of `tmkb.publishing` with this name has
# `files(patterns: Mapping[str, tuple[str, Pattern]]) -> Mapping[str, str]`: id → folder and pattern, path → content.
# If it has `FOLDER`, the files go into the subfolder with this name.
TARGETS = {
    "semgrep": "rules for semgrep, one file for each pattern",
    "site": "a static website",
    "skill": "an Agent Skill, into the subfolder tmkb-authorization",
}
_EXTRAS = {"site": "jinja2"}  # format → the module of the extra with its name
_INSTRUCTIONS = "agents-md"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    targets = parser.add_subparsers(dest="target", metavar="FORMAT", required=True)
    for name, about in TARGETS.items():
        target = targets.add_parser(name, help=about, description=f"Write {about}.")
        target.add_argument("ids", nargs="*", metavar="ID", help="only these patterns")
        target.add_argument(
            "-o",
            "--output",
            required=True,
            metavar="DIR",
            help="the target folder; files of an earlier export into it are replaced",
        )
        target.add_argument("--force", action="store_true", help="write into a folder that contains other files")
        sources.configure_patterns(target)
        output.configure(target)
    about = "instructions for AGENTS.md or CLAUDE.md"
    target = targets.add_parser(_INSTRUCTIONS, help=about, description=f"Write {about}.")
    target.add_argument("ids", nargs="*", metavar="ID", help="the patterns whose checks are listed")
    target.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="replace the lines between the markers in FILE, or create it; without, print the instructions",
    )
    sources.configure_patterns(target)
    output.configure(target)


def run(args: argparse.Namespace) -> int:
    """Write the files. Return 1 if an id is unknown or there is nothing to write.

    Raises:
        DocumentError: the file cannot be read.
        SpecError: the folder or file cannot be used, or data of the format is invalid.
    """
    if (needed := _EXTRAS.get(args.target)) and importlib.util.find_spec(needed) is None:
        return output.lacks_extra(f"export {args.target}", args.target)
    patterns = sources.patterns_by_id(args.patterns)
    ids = get.existing(args.ids, patterns) if args.ids else [*patterns]
    if ids is None:
        return 1
    if args.target == _INSTRUCTIONS:
        return _instruct(args, [patterns[id_][1] for id_ in (ids if args.ids else agents_md.usual(ids))])
    module: Any = importlib.import_module(f"tmkb.publishing.{args.target}")
    files = module.files({id_: patterns[id_] for id_ in ids})
    if not files:
        output.fail(f"There is nothing to export for {args.target}.")
        return 1
    subfolder = getattr(module, "FOLDER", None)
    place = os.path.join(args.output, subfolder) if subfolder else args.output
    removed = folder.write(place, args.target, files, args.force)
    counted = f"{len(files)} files" if len(files) != 1 else "1 file"
    text = f"{counted} in {paths.shown(place)}" + (f", {len(removed)} removed" if removed else "") + "."
    output.write(args, {"folder": place, "files": sorted(files), "removed": removed}, text)
    return 0


def _instruct(args: argparse.Namespace, patterns: Sequence[Pattern]) -> int:
    """Print the instructions, or write them into the file."""
    if not patterns:
        output.fail("None of the patterns that are usually listed is there. Name the ids of others.")
        return 1
    text = agents_md.text(patterns)
    if args.output is not None:
        has_changed = agents_md.write(args.output, text)
        sentence = f"{paths.shown(args.output)} {'is written' if has_changed else 'is up to date'}."
        output.write(args, {"file": args.output, "changed": has_changed}, sentence)
    elif args.json:
        output.write(args, {"text": text}, "")
    else:  # not wrapped, so that it can be saved
        sys.stdout.write(hidden.escape(text))
    return 0
