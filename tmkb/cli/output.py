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

from tmkb.errors import Problem
from tmkb.schema import hidden, problems

_UNWRAPPED = 1 << 20  # columns: more than any line has


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
        console.print(_Escaped(text), markup=False, crop=False)  # what people wrote may have brackets
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
    *fixed, last = columns
    for column in fixed:
        made.add_column(column, no_wrap=True)
    made.add_column(last, no_wrap=not sys.stdout.isatty())
    for row in rows:
        made.add_row(*row)
    return made


def code(text: str, language: str) -> Any:
    """Source code, coloured where colours are shown."""
    from rich.syntax import Syntax
    from rich.text import Text

    if not sys.stdout.isatty():
        return Text(text.rstrip("\n"))
    # The terminal's own colours are readable on its background. Lines are not broken, so that they can be copied.
    coloured = Syntax("", language, theme="ansi_light").highlight(text.rstrip("\n"))
    coloured.no_wrap, coloured.overflow = True, "ignore"
    coloured.rstrip()
    return coloured


class Indented:
    """What rich renders as ``part``, behind ``first`` on its first line and as many spaces on the others.

    Unlike rich's Padding it does not cut what is wider than the terminal.
    """

    def __init__(self, part: Any, first: Any = "  ") -> None:
        self.part = part
        self.first = first

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """Yield the segments of each line."""
        from rich.segment import Segment
        from rich.text import Text

        head = self.first if isinstance(self.first, Text) else Text(self.first)
        narrow = options.update_width(max(options.max_width - head.cell_len, 20))
        for number, line in enumerate(Segment.split_lines(console.render(self.part, narrow))):
            yield from (each for each in head.render(console) if not number)
            yield Segment(" " * head.cell_len if number else "")
            yield from line
            yield Segment.line()


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
