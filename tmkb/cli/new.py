"""``tmkb new``: begin something of one's own. A pattern is so far all that can be begun."""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from tmkb.authoring import draft
from tmkb.cli import output
from tmkb.errors import Problem, SpecError
from tmkb.schema import problems

ASKED = {  # what has no default, and how it is asked for in a terminal
    "id": "Id, with a prefix of your own (as ACME-AUTH-001)",
    "name": "Name, a title of a few words",
    "category": "Category (as object-level; `tmkb list` shows more)",
}
KEYS = (*ASKED, "framework", "language", "severity", "tier")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    pattern = kinds.add_parser(
        "pattern",
        help="a folder with a pattern that is valid and proved as it stands, to be replaced piece by piece",
        description="Write a pattern that is valid and proved as it stands, to be replaced piece by piece. "
        "In a terminal you are asked for what is missing.",
    )
    pattern.add_argument("--id", type=str.upper, metavar="ID", help="a prefix of your own and three digits")
    pattern.add_argument("--name", metavar="NAME", help="a title of a few words")
    pattern.add_argument("--category", metavar="NAME", help="the part of authorization it belongs to")
    pattern.add_argument("--framework", default="flask", metavar="NAME", help="or `any` (default: flask)")
    pattern.add_argument("--language", default="python", metavar="NAME", help="or `any` (default: python)")
    severities, tiers = draft.choices("severity"), draft.choices("tier")
    pattern.add_argument("--severity", type=str.lower, choices=severities, default="medium", help="(default: medium)")
    pattern.add_argument("--tier", type=str.upper, choices=tiers, default="B", help="A: in full, B: in short (default)")
    pattern.add_argument("--dir", default=os.curdir, metavar="DIR", help="where the folder is made (default: here)")
    output.configure(pattern)


def run(args: argparse.Namespace) -> int:
    """Write the folder. 2 where something is missing, cannot be so, or is there already."""
    try:
        values = _values(args)
        folder, files = draft.write(args.dir, values)
    except SpecError as error:
        for problem in error.problems:
            output.fail(problems.sentence(problem))
        return 2
    value = {"id": values["id"], "folder": folder, "files": files}
    output.write(args, value, _next(values["id"], folder, files, args.dir))
    return 0


def _values(args: argparse.Namespace) -> dict[str, str]:
    """What the options say, and in a terminal the answers. Raises SpecError."""
    values = {key: _cleaned(value) for key in KEYS if (value := getattr(args, key)) is not None}
    if faults := [fault for key, value in values.items() if (fault := draft.fault(key, value, args.dir))]:
        raise SpecError(faults)
    if sys.stdin.isatty() and sys.stderr.isatty():
        values |= _asked([key for key in ASKED if key not in values], args.dir)
    if missing := [f"--{key}" for key in ASKED if key not in values]:
        raise SpecError([Problem.of_argument("missing_options", "--id", names=", ".join(missing))])
    return values


def _asked(keys: list[str], place: str) -> dict[str, str]:
    """What somebody at the terminal answers, asked again until it can be so; less where they end it."""
    answers: dict[str, str] = {}
    try:
        while len(answers) < len(keys):
            key = keys[len(answers)]
            sys.stderr.write(f"{ASKED[key]}: ")
            sys.stderr.flush()
            if not (line := sys.stdin.readline()):
                break
            value = _cleaned(line.upper() if key == "id" else line)
            if fault := draft.fault(key, value, place):
                sys.stderr.write(f"{problems.sentence(fault)}\n")
            else:
                answers[key] = value
    except KeyboardInterrupt:
        pass
    if len(answers) < len(keys):
        sys.stderr.write("\n")
    return answers


def _cleaned(value: str) -> str:
    return " ".join(value.split())


def _next(id_: str, folder: str, files: list[str], place: str) -> object:
    """What was made, and what to do with it."""
    from rich.text import Text

    quoted = shlex.quote(place)
    lines = [
        f"{folder}: {', '.join(files)}",
        "It is valid, and proved as it stands; replace it piece by piece, and look again after each:",
        f"  tmkb validate {quoted}",
        f"  tmkb prove {id_} --patterns {quoted}",
    ]
    return Text("\n".join(lines), no_wrap=True, overflow="ignore")
