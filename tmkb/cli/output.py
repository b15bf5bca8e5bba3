"""Text for people or JSON for programs, in one place. Colours and tables in a terminal; NO_COLOR is obeyed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any

from tmkb import problems
from tmkb.errors import Problem

_UNWRAPPED = 4096


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the option that every command has."""
    parser.add_argument("--json", action="store_true", help="print one line of JSON instead of text")


def write(args: argparse.Namespace, value: object, text: object) -> None:
    """Print ``value`` as JSON where that is asked for; else ``text``, which rich renders."""
    if args.json:
        print(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    else:
        print(rendered(text))


def rendered(text: object) -> str:
    """``text`` as rich renders it for stdout: coloured and wrapped for a terminal, plain and unwrapped for all else."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    console = Console(highlight=False, width=None if terminal else _UNWRAPPED)
    with console.capture() as capture:
        console.print(text, markup=False)  # what people wrote may have brackets
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Any:
    """A table as rich renders it; the last column takes what room there is."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD if sys.stdout.isatty() else None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, no_wrap=not sys.stdout.isatty())
    for row in rows:
        made.add_row(*row)
    return made


def code(text: str, language: str) -> Any:
    """Source code, coloured where colours are shown."""
    from rich.syntax import Syntax
    from rich.text import Text

    if not sys.stdout.isatty():
        return Text(text.rstrip("\n"))
    return Syntax(text.rstrip("\n"), language, background_color="default", word_wrap=True)


def fail(message: str) -> None:
    """Say on stderr why there is no result."""
    print(f"tmkb: {message}", file=sys.stderr)


def problem_values(found: Iterable[Problem]) -> list[dict[str, object]]:
    """Problems as programs read them."""
    return [
        {
            "file": p.file,
            "line": p.line or None,
            "column": p.column or None,
            "rule": p.rule,
            "sentence": problems.sentence(p),
            "remedy": problems.remedy(p),
        }
        for p in found
    ]


def problem_lines(found: Iterable[Problem]) -> str:
    """Problems as people and editors read them, one a line."""
    return "\n".join(problems.line(problem) for problem in found)
