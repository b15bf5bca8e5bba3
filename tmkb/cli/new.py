"""``tmkb new``: create a pattern."""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from tmkb.authoring import scaffold
from tmkb.cli import layout, output
from tmkb.cli.layout import Line
from tmkb.errors import Problem, SpecError
from tmkb.schema import problems

PROMPTS = {  # option without a default → its prompt in a terminal
    "id": "Id, with a prefix of your own (such as ACME-AUTH-001)",
    "name": "Name, a title of a few words",
    "category": "Category (such as object-level; see `tmkb list`)",
}
KEYS = (*PROMPTS, "framework", "language", "severity", "tier")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    pattern = kinds.add_parser(
        "pattern",
        help="a folder with a valid, proven pattern to start from",
        description="Create a folder with a valid, proven pattern to start from. "
        "A terminal prompts for missing options.",
    )
    pattern.add_argument("--id", type=str.upper, metavar="ID", help="a prefix of your own and three digits")
    pattern.add_argument("--name", metavar="NAME", help="a title of a few words")
    pattern.add_argument("--category", metavar="NAME", help="its area of authorization")
    pattern.add_argument("--framework", default="flask", metavar="NAME", help="or `any` (default: flask)")
    pattern.add_argument("--language", default="python", metavar="NAME", help="or `any` (default: python)")
    severities, tiers = scaffold.choices("severity"), scaffold.choices("tier")
    pattern.add_argument("--severity", type=str.lower, choices=severities, default="medium", help="(default: medium)")
    pattern.add_argument("--tier", type=str.upper, choices=tiers, default="B", help="A: complete, B: short (default)")
    pattern.add_argument("--dir", default=os.curdir, metavar="DIR", help="the parent folder (default: current folder)")
    output.configure(pattern)


def run(args: argparse.Namespace) -> int:
    """Write the folder. Return 2 if an option is missing or invalid, or the folder exists."""
    try:
        values = _values(args)
        folder, files = scaffold.write(args.dir, values)
    except SpecError as error:
        output.fail_each(error.problems)
        return 2
    value = {"id": values["id"], "folder": folder, "files": files}
    output.write(args, value, _next(values["id"], folder, files, args.dir))
    return 0


def _values(args: argparse.Namespace) -> dict[str, str]:
    """Return the values from options and, in a terminal, from prompts. Raises SpecError."""
    values = {key: _cleaned(value) for key in KEYS if (value := getattr(args, key)) is not None}
    if faults := [fault for key, value in values.items() if (fault := scaffold.check(key, value, args.dir))]:
        raise SpecError(faults)
    if sys.stdin.isatty() and sys.stderr.isatty():
        values |= _prompt([key for key in PROMPTS if key not in values], args.dir)
    if missing := [f"--{key}" for key in PROMPTS if key not in values]:
        raise SpecError([Problem.of_argument("missing_options", "--id", names=", ".join(missing))])
    return values


def _prompt(keys: list[str], folder: str) -> dict[str, str]:
    """Prompt for each key until its value is valid. Return fewer values if the user ends the input."""
    answers: dict[str, str] = {}
    try:
        while len(answers) < len(keys):
            key = keys[len(answers)]
            sys.stderr.write(f"{PROMPTS[key]}: ")
            sys.stderr.flush()
            if not (line := sys.stdin.readline()):
                break
            value = _cleaned(line.upper() if key == "id" else line)
            if fault := scaffold.check(key, value, folder):
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


def _next(id_: str, folder: str, files: list[str], place: str) -> list[Line]:
    """Return the created files and the next steps."""
    quoted = shlex.quote(place)
    lines = [
        f"{folder}: {', '.join(files)}",
        "The pattern is valid and proven. Replace it step by step, and check it after each change:",
        f"  tmkb validate {quoted}",
        f"  tmkb prove {id_} --patterns {quoted}",
        "Queries find it by its texts and by example questions. Write eight or more, one a line, and add them:",
        f'  {{"context": "what a developer is about to do", "kind": "task", "relevant": {{"{id_}": 3}}}}',
        f"  tmkb questions add questions.jsonl --author me --dir {quoted}",
    ]
    return layout.text("\n".join(lines), wraps=False)
