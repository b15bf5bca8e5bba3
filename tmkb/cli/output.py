"""Print text for people or JSON for programs. Terminals get colours and tables, unless NO_COLOR is set.

Hidden and control characters in the content are escaped, because a terminal would execute them.
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
    """Add the option ``--json``."""
    parser.add_argument("--json", action="store_true", help="print one line of JSON instead of text")


def write(args: argparse.Namespace, value: object, text: object) -> None:
    """Print ``value`` as JSON with ``--json``, else ``text``, rendered by rich."""
    if args.json:
        is_unicode = (sys.stdout.encoding or "utf-8").lower().replace("-", "") in ("utf8", "utf16", "utf32")
        print(hidden.escape(json.dumps(value, ensure_ascii=not is_unicode, separators=(",", ":"))))
    else:
        print(rendered(text))


def rendered(text: object) -> str:
    """Render ``text`` for stdout: coloured and wrapped in a terminal, plain and unwrapped elsewhere."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    console = Console(highlight=False, width=None if terminal else _UNWRAPPED)
    with console.capture() as capture:
        console.print(_Escaped(text), markup=False, crop=False)  # content can contain brackets
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


class _Escaped:
    """Renders ``content`` with hidden and control characters escaped, and keeps rich's own control codes."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        for segment in console.render(self.content, options):
            text, style, control = segment
            yield segment if control else type(segment)(hidden.escape(text), style)


def table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Any:
    """Return a rich table whose last column takes the remaining width."""
    from rich import box
    from rich.table import Table

    result = Table(box=box.SIMPLE_HEAD if sys.stdout.isatty() else None, pad_edge=False, header_style="bold")
    *fixed, last = columns
    for column in fixed:
        result.add_column(column, no_wrap=True)
    result.add_column(last, no_wrap=not sys.stdout.isatty())
    for row in rows:
        result.add_row(*row)
    return result


def code(text: str, language: str) -> Any:
    """Return source code, highlighted in a terminal."""
    from rich.syntax import Syntax
    from rich.text import Text

    if not sys.stdout.isatty():
        return Text(text.rstrip("\n"))
    # ANSI colours are readable on the terminal's background. Lines are not wrapped, so that they can be copied.
    coloured = Syntax("", language, theme="ansi_light").highlight(text.rstrip("\n"))
    coloured.no_wrap, coloured.overflow = True, "ignore"
    coloured.rstrip()
    return coloured


class Indented:
    """Renders ``part`` with the prefix ``first``, and indents the other lines by its width.

    Unlike rich's Padding, it does not cut lines that are wider than the terminal.
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
    """Print an error message to stderr."""
    print(f"tmkb: {hidden.escape(message)}", file=sys.stderr)


def use_any_encoding() -> None:
    """Make stdout escape characters that its encoding lacks, for example as ``\\u2713``."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def problem_values(listed: Iterable[Problem]) -> list[dict[str, object]]:
    """Return problems as JSON values."""
    return [
        {
            "file": p.file,
            "line": p.line or None,
            "column": p.column or None,
            "rule": p.rule,
            "sentence": problems.sentence(p),
            "remedy": problems.remedy(p),
        }
        for p in listed
    ]


def problem_lines(listed: Iterable[Problem]) -> str:
    """Return problems as text, one per line."""
    return "\n".join(problems.line(problem) for problem in listed)
