"""``tmkb export``: write patterns in the formats of other tools."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
from typing import Any

from tmkb.cli import get, loader, output
from tmkb.clients import launch
from tmkb.publishing import folder
from tmkb.schema import paths
from tmkb.server import sources

# Format → help. The module of `tmkb.publishing` with this name has
# `files(patterns: Mapping[str, tuple[str, Pattern]]) -> Mapping[str, str]`: id → folder and pattern, path → content;
# that of `plugin` also takes the words of the command. If the module has `FOLDER`, that is the subfolder of the files.
TARGETS = {
    "semgrep": "rules for semgrep, one file for each pattern",
    "site": "a static website",
    "skill": "an Agent Skill, into the subfolder tmkb-authorization",
    "plugin": "a plugin for Claude Code: MCP server, skill, and a hook that reviews edits",
}
_EXTRAS = {"site": "jinja2"}  # format → the module of the extra with its name


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
        if name == "plugin":
            from tmkb.cli.target import words

            target.add_argument(
                "--command",
                type=words,
                metavar="COMMAND",
                help="the command that runs tmkb, such as 'uvx tmkb'; by default this installation",
            )
        target.add_argument("--force", action="store_true", help="write into a folder that contains other files")
        sources.configure_patterns(target)
        output.configure(target)


def run(args: argparse.Namespace) -> int:
    """Write the files. Return 1 if an id is unknown or there is nothing to write.

    Raises:
        SpecError: the folder cannot be used, or data of the format is invalid.
    """
    if (needed := _EXTRAS.get(args.target)) and importlib.util.find_spec(needed) is None:
        return output.lacks_extra(f"export {args.target}", args.target)
    with output.progress("Reading the patterns"):
        patterns = loader.patterns_by_id(args.patterns)
    ids = get.existing(args.ids, patterns) if args.ids else [*patterns]
    if ids is None or not patterns:  # which has been said
        return 1
    module: Any = importlib.import_module(f"tmkb.publishing.{args.target}")
    chosen = {id_: patterns[id_] for id_ in ids}
    with output.progress(f"Rendering {args.target}"):
        files = module.files(chosen, args.command or _ours()) if args.target == "plugin" else module.files(chosen)
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


def _ours() -> list[str]:
    """Return the words that run this installation from anywhere."""
    program, arguments = launch.command()
    return [program, *arguments]
