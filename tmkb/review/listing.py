"""Write changed files for a reader: sections with line numbers, and what stands around them in the new file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tmkb.review.changes import Line, Section, indentation
from tmkb.schema import hidden, template

_TOP = 30  # lines at the beginning of a file, with its imports
_LONGEST = 1000  # code points of a line; more are cut


class File(NamedTuple):
    """A changed file.

    Attributes:
        path: of the new file.
        sections: number → section, in the order of the file.
        current: the lines of the whole new file; None if they are not known.
    """

    path: str
    sections: Mapping[int, Section]
    current: Sequence[str] | None

    def text(self, around: int) -> str:
        """Return the sections under their numbers, with ``around`` lines of the file before and after each.

        Every line of code begins with a column for its number and its sign, so that no line of code can look like the
        head of a section, which begins with `@@`.
        """
        return "\n".join(self._lines(around))

    def _lines(self, around: int) -> Iterator[str]:
        yield f"@@ file {hidden.line(self.path)} @@"
        shown, last = self._shown(around), 0
        for number, section in self.sections.items():
            numbers = [line.number for line in section.lines if line.number is not None]
            if self.current is None:
                yield from (f"         {_clean(text)}" for text in section.enclosing)
            elif numbers:
                yield from self._between(shown, last, numbers[0])
            other = "@@ unchanged @@" if numbers else "@@ removed @@"
            yield f"@@ section {number} @@" if section.can_be_named else other
            yield from map(_listed, section.lines)
            last = numbers[-1] if numbers else last
        if self.current is not None and last < len(self.current):
            yield "@@ unchanged @@"
            yield from self._between(shown, last, len(self.current) + 1, "")

    def _shown(self, around: int) -> set[int]:
        """Return the numbers of the unchanged lines that are shown."""
        if self.current is None:
            return set()
        shown = {*range(1, min(_TOP, around) + 1)}
        for section in self.sections.values():
            numbers = [line.number for line in section.lines if line.number is not None]
            if numbers:
                shown.update(range(numbers[0] - around, numbers[-1] + around + 1))
                shown.update(_heads(self.current, numbers[0]))
        return shown

    def _between(self, shown: set[int], last: int, following: int, head: str = "@@ unchanged @@") -> Iterator[str]:
        """Yield the lines of the file after ``last`` and before ``following`` that are shown."""
        current = self.current or ()
        numbers = [number for number in range(last + 1, following) if number in shown]
        if numbers and head:
            yield head
        for number in numbers:
            if number > last + 1:
                yield "       …"
            yield _listed(Line(" ", current[number - 1], number))
            last = number
        if last + 1 < following:
            yield "       …"


def _heads(lines: Sequence[str], number: int) -> Iterator[int]:
    """Yield the numbers of the lines above the line ``number`` that are the heads of what it stands in."""
    depth = indentation(lines[number - 1])
    for above in range(number - 1, 0, -1):
        if depth == 0:
            return
        text = lines[above - 1]
        if text.strip() and indentation(text) < depth:
            depth = indentation(text)
            yield above


def _listed(line: Line) -> str:
    return f"{'' if line.number is None else line.number:>6} {line.sign} {_clean(line.text)}"


def _clean(text: str) -> str:
    return template.cut(hidden.line(text), _LONGEST)
