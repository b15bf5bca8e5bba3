"""Split changes into sections: hunks of a diff, or functions of a file. A section gets at most one comment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchedFile, PatchSet

from tmkb.errors import DocumentError, Problem

LONGEST = 40  # lines of a section that is not split
_HEADING = 8  # lines below the head of a class that are shown with each of its functions
_TAB = "    "


class Line(NamedTuple):
    """A line of a section. ``sign``: ``+``, ``-`` or a space. ``number``: in the new file; None if it was removed."""

    sign: str
    text: str
    number: int | None

    @property
    def is_added(self) -> bool:
        """Whether the change adds it."""
        return self.sign == "+"


@dataclass(frozen=True)
class Section:
    """Lines that are judged together.

    Attributes:
        path: of the new file, with slashes.
        lines: those of the section.
        enclosing: the head of the class or function around them, without numbers.
    """

    path: str
    lines: tuple[Line, ...]
    enclosing: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The section as a question: the path, what encloses it, and its lines with their signs."""
        heading = [self.path, *(f" {line}" for line in self.enclosing)]
        return "\n".join([*heading, *(line.sign + line.text for line in self.lines)])

    @property
    def added(self) -> list[Line]:
        """The added lines that are not blank."""
        return [line for line in self.lines if line.is_added and line.text.strip()]


def of_diff(text: str, name: str = "the diff") -> list[Section]:
    """Return the sections of a unified diff, as `git diff` writes it. Removed and binary files have none.

    Args:
        text: the diff.
        name: what it is called in an error.

    Raises:
        DocumentError: it is not a unified diff.
    """
    try:
        files = PatchSet(text.splitlines(keepends=True))
    except (UnidiffParseError, ValueError) as error:
        raise DocumentError([Problem("not_a_diff", name, reason=str(error).rstrip("."))]) from error
    if not files and text.strip():
        raise DocumentError([Problem("not_a_diff", name, reason="it has no line that begins with ---")])
    return [section for file in files if not file.is_removed_file for section in _of_file(file)]


def _of_file(file: PatchedFile) -> Iterator[Section]:
    for hunk in file:
        lines = tuple(
            Line(each.line_type, each.value.rstrip("\r\n"), each.target_line_no)
            for each in hunk
            if each.line_type in ("+", "-", " ")
        )
        heading = (hunk.section_header,) if hunk.section_header else ()
        yield from split(Section(file.path, lines, heading))


def of_file(path: str, text: str) -> list[Section]:
    """Return the sections of a whole file, as if every line were added."""
    lines = tuple(Line("+", line, number) for number, line in enumerate(text.splitlines(), 1))
    return [*split(Section(path, lines))]


def split(section: Section) -> Iterator[Section]:
    """Yield the parts of a long section: those between blank lines at the smallest indentation, and so on inwards."""
    lines = section.lines
    if len(lines) <= LONGEST:
        yield section
        return
    starts = _starts(lines)
    if len(starts) < 2:
        yield section
        return
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        part = lines[start:end]
        yield from split(Section(section.path, part, (*section.enclosing, *_enclosing(lines, start))))


def _starts(lines: Sequence[Line]) -> list[int]:
    """Return where parts begin: after blank lines, at the smallest indentation at which there are at least two."""
    after_blank = [
        at for at, line in enumerate(lines) if line.text.strip() and (at == 0 or not lines[at - 1].text.strip())
    ]
    for indentation in sorted({_indentation(lines[at].text) for at in after_blank}):
        found = [at for at in after_blank if _indentation(lines[at].text) <= indentation]
        if len(found) > 1:
            return [0, *(at for at in found if at)]
    return [0]


def _enclosing(lines: Sequence[Line], start: int) -> Iterator[str]:
    """Yield the last line before ``start`` that is indented less, and what stands directly below it."""
    depth = _indentation(lines[start].text)
    kept = [line for line in lines[:start] if line.sign != "-"]
    heads = [at for at, line in enumerate(kept) if line.text.strip() and _indentation(line.text) < depth]
    if not heads:
        return
    yield kept[heads[-1]].text
    for line in kept[heads[-1] + 1 : heads[-1] + 1 + _HEADING]:
        if not line.text.strip():
            return
        yield line.text


def _indentation(text: str) -> int:
    spaced = text.replace("\t", _TAB)
    return len(spaced) - len(spaced.lstrip())
