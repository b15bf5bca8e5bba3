"""Text for people or JSON for programs, in one place. Colours and tables in a terminal; NO_COLOR is obeyed.

Hidden and control characters of the content are escaped: a terminal would obey them.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from tmkb import hidden, problems
from tmkb.errors import Problem

_UNWRAPPED = 4096


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the option that every command has."""
    parser.add_argument("--json", action="store_true", help="print one line of JSON instead of text")


def write(args: argparse.Namespace, value: object, text: object) -> None:
    """Print ``value`` as JSON where that is asked for; else ``text``, which rich renders."""
    if args.json:
        is_unicode = (sys.stdout.encoding or "utf-8").lower().replace("-", "") in ("utf8", "utf16", "utf32")
        print(hidden.escape(json.dumps(value, ensure_ascii=not is_unicode, separators=(",", ":"))))
    else:
        print(rendered(text))


def rendered(text: object) -> str:
    """``text`` as rich renders it for stdout: coloured and wrapped for a terminal, plain and unwrapped for all else."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    console = Console(highlight=False, width=None if terminal else _UNWRAPPED)
    with console.capture() as capture:
        console.print(_Escaped(text), markup=False)  # what people wrote may have brackets
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


class _Escaped:
    """Renders ``content`` with its hidden and control characters escaped; rich's own codes for colours stay."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        for segment in console.render(self.content, options):
            text, style, control = segment
            yield segment if control else type(segment)(hidden.escape(text), style)


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
    print(f"tmkb: {hidden.escape(message)}", file=sys.stderr)


def use_any_encoding() -> None:
    """Let stdout take every character: one that its encoding lacks is written as an escape, such as ``\\u2713``."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def problem_values(found: Iterable[Problem]) -> list[dict[str, object]]:
    """Problems as programs read them."""
    return [
        {
            "file": p.file,
            "line": p.line,
            "column": p.column,
            "rule": p.rule,
            "sentence": problems.sentence(p),
            "remedy": problems.remedy(p),
        }
        for p in found
    ]


def problem_lines(found: Iterable[Problem]) -> str:
    """Problems as people and editors read them, one a line."""
    return "\n".join(problems.line(problem) for problem in found)
