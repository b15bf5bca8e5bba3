"""Lay out text for a terminal: styled lines, indentation, wrapping, tables, highlighted code.

A layout is a list of `Line`, so layouts are joined with ``+``. Styles are names of `_STYLES`, such as ``bold red``.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TextIO

from tmkb.cli import highlight
from tmkb.cli.highlight import Span
from tmkb.schema import hidden

_STYLES = {"bold": 1, "dim": 2, "italic": 3, "red": 31, "green": 32, "yellow": 33, "magenta": 35, "cyan": 36}
_LEAST = 20  # columns that a wrapped text has beside its indentation, however narrow the terminal is
_MOST = 100  # columns of a wrapped text: longer lines are hard to follow


class Line(NamedTuple):
    """A line that is wrapped to the width of the terminal if ``wraps``. Further rows are indented by ``prefix``."""

    spans: tuple[Span, ...] = ()
    prefix: tuple[Span, ...] = ()
    wraps: bool = True


def text(*parts: str | Span, wraps: bool = True) -> list[Line]:
    """Return the lines of a text, whose parts may have styles; one empty line without parts."""
    lines: list[list[Span]] = [[]]
    for part in parts:
        content, style = (part, "") if isinstance(part, str) else part
        first, *others = content.split("\n")
        lines[-1].append((first, style))
        lines += [[(other, style)] for other in others]
    return [Line(tuple(spans), wraps=wraps) for spans in lines]


def indented(lines: Iterable[Line], first: str | Span = "  ") -> list[Line]:
    """Put ``first`` in front of the first line, and as many spaces in front of the others."""
    head: Span = (first, "") if isinstance(first, str) else first
    blank: Span = (" " * _width(head[0]), "")
    return [line._replace(prefix=(blank if number else head, *line.prefix)) for number, line in enumerate(lines)]


def table(columns: Iterable[str], rows: Iterable[Iterable[str | Span]]) -> list[Line]:
    """Return a table with a header. Only the last column is wrapped."""
    header: tuple[Span, ...] = tuple((column, "bold") for column in columns)
    cells = [header, *(tuple((cell, "") if isinstance(cell, str) else cell for cell in row) for row in rows)]
    widths = [max(_width(content) for content, _ in column) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        fixed = [
            (cell + " " * (width - _width(cell) + 2), style) for (cell, style), width in zip(row, widths, strict=True)
        ]
        lines.append(Line((row[-1],), tuple(fixed[:-1])))
    return lines


def code(source: str, language: str) -> list[Line]:
    """Return source code, highlighted if the language is known. Lines are not wrapped, so that they can be copied."""
    source = source.rstrip("\n")
    return text(*highlight.spans(source, language), wraps=False)


def rendered(lines: Iterable[Line], stream: TextIO | None = None) -> str:
    """Render lines for ``stream``, by default stdout: wrapped and with colours in a terminal, plain elsewhere."""
    width = shutil.get_terminal_size().columns if (stream or sys.stdout).isatty() else None
    coloured = _has_colours(width is not None)
    return "\n".join(row for line in lines for row in _rows(line, width, coloured))


def plain(lines: Iterable[Line]) -> str:
    """Render lines for a file: neither wrapped nor coloured."""
    return "\n".join(row for line in lines for row in _rows(line, None, False))


def _has_colours(is_terminal: bool) -> bool:
    """Return whether to print colours, by the conventions of no-color.org and bixense.com/clicolors."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    if not is_terminal or os.environ.get("TERM") == "dumb":
        return False
    return sys.platform != "win32" or "WT_SESSION" in os.environ  # an older console prints the codes


def _rows(line: Line, width: int | None, coloured: bool) -> Iterator[str]:
    prefix, spans = ([(hidden.escape(part), style) for part, style in each] for each in (line.prefix, line.spans))
    indent = _width("".join(part for part, _ in prefix))
    whole = "".join(part for part, _ in spans)
    wraps = width is not None and line.wraps
    room = min(max((width or 0) - indent, _LEAST), _MOST)
    for start, end in _breaks(whole, room) if wraps else [(0, len(whole))]:
        row = [*([(" " * indent, "")] if start else prefix), *_cut(spans, start, end)]
        yield "".join(_styled(part, style) if coloured else part for part, style in row).rstrip()


def _breaks(whole: str, width: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each row of ``whole``. A longer word stays whole, and so does a quoted command."""
    start = end = 0
    for word in re.finditer(r"(?:`[^`]+`|\S)+", whole):
        if end and _width(whole[start : word.end()]) > width:
            yield start, end
            start = word.start()
        end = word.end()
    yield start, end


def _cut(spans: Iterable[Span], start: int, end: int) -> Iterator[Span]:
    at = 0
    for part, style in spans:
        yield part[max(start - at, 0) : max(end - at, 0)], style
        at += len(part)


def _styled(part: str, style: str) -> str:
    codes = ";".join(str(_STYLES[name]) for name in style.split())
    return f"\x1b[{codes}m{part}\x1b[0m" if codes and part else part


def _width(content: str) -> int:
    """Return the number of columns that a terminal needs."""
    if content.isascii():
        return len(content)
    return sum(
        0 if unicodedata.combining(character) else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in content
    )
