"""Lay out text for a terminal: styled lines, indentation, wrapping, tables, highlighted code.

A layout is a list of `Line`, so layouts are joined with ``+``. Styles are names of `_STYLES`, such as ``bold red``.
"""

from __future__ import annotations

import keyword
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tmkb.schema import hidden

_STYLES = {"bold": 1, "dim": 2, "italic": 3, "red": 31, "green": 32, "yellow": 33, "magenta": 35, "cyan": 36}
_LEAST = 20  # columns that a wrapped text has beside its indentation, however narrow the terminal is
_STRING = r"'''[\s\S]*?'''|\"\"\"[\s\S]*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\""
_HIGHLIGHTED = {  # language → an expression whose groups are named like styles
    "python": rf"(?P<dim>#.*)|(?P<green>{_STRING})|(?P<magenta>@[\w.]+|\b(?:{'|'.join(keyword.kwlist)})\b)",
    "yaml": rf"(?P<dim>(?:^|(?<=\s))#.*)|(?P<green>{_STRING})|(?P<cyan>(?<![^\s{{,])[\w$./-]+(?=:(?:\s|$)))",
    "diff": r"(?P<bold>^(?:---|\+\+\+) .*)|(?P<cyan>^@@.*)|(?P<green>^\+.*)|(?P<red>^-.*)",
}

Span = tuple[str, str]  # text and style; the style may be empty


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


def table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> list[Line]:
    """Return a table with a header. Only the last column is wrapped."""
    header, *cells = [tuple(columns), *map(tuple, rows)]
    widths = [max(map(_width, column)) for column in zip(header, *cells, strict=True)]
    lines = []
    for row, style in [(header, "bold"), *((row, "") for row in cells)]:
        fixed = [cell + " " * (width - _width(cell) + 2) for cell, width in zip(row[:-1], widths, strict=False)]
        lines.append(Line(((row[-1], style),), tuple((cell, style) for cell in fixed)))
    return lines


def code(source: str, language: str) -> list[Line]:
    """Return source code, highlighted if the language is known. Lines are not wrapped, so that they can be copied."""
    source = source.rstrip("\n")
    return text(*_highlighted(source, _HIGHLIGHTED.get(language, "(?!)")), wraps=False)


def rendered(lines: Iterable[Line]) -> str:
    """Render lines for stdout: wrapped and with colours in a terminal, plain elsewhere."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    coloured = width is not None and _has_colours()
    return "\n".join(row for line in lines for row in _rows(line, width, coloured))


def _has_colours() -> bool:
    if "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        return False
    return sys.platform != "win32" or "WT_SESSION" in os.environ  # an older console prints the codes


def _rows(line: Line, width: int | None, coloured: bool) -> Iterator[str]:
    prefix, spans = ([(hidden.escape(part), style) for part, style in each] for each in (line.prefix, line.spans))
    indent = _width("".join(part for part, _ in prefix))
    whole = "".join(part for part, _ in spans)
    wraps = width is not None and line.wraps
    for start, end in _breaks(whole, max((width or 0) - indent, _LEAST)) if wraps else [(0, len(whole))]:
        row = [*([(" " * indent, "")] if start else prefix), *_cut(spans, start, end)]
        yield "".join(_styled(part, style) if coloured else part for part, style in row).rstrip()


def _breaks(whole: str, width: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each row of ``whole``. A longer word stays whole."""
    start = end = 0
    for word in re.finditer(r"\S+", whole):
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


def _highlighted(source: str, expression: str) -> Iterator[Span]:
    at = 0
    for match in re.finditer(expression, source, re.MULTILINE):
        yield source[at : match.start()], ""
        yield match[0], match.lastgroup or ""
        at = match.end()
    yield source[at:], ""
