"""Split changes into sections: hunks of a diff, or parts of a file. A section gets at most one comment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchedFile, PatchSet

from tmkb.errors import DocumentError, Problem

LONGEST = 40  # lines of a section that is not split
_HEADING = 8  # lines below the head of a class that are shown with each of its functions
_FAR = 400  # lines before a function in which the head of its class is searched
_ENCLOSING = 2 * (1 + _HEADING)  # lines around a section
_TAB = "    "
_WITHOUT_HUNKS = re.compile(r"(Submodule |\* Unmerged path |\s*$)")  # lines of a diff that has only these
_IMPORT = re.compile(
    r"\s*(import\b|from \S+ import\b|using [\w.]+;|use [\w\\:]+|require\b|package \w|#include\b|const .+ = require\()"
)
_COMBINED = re.compile(r"^diff --(cc|combined) ", re.MULTILINE)


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
        enclosing: the heads of the class or function around them, without numbers.
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
    def can_be_named(self) -> bool:
        """Whether it has a changed line, and a line in the new file."""
        return any(line.sign != " " for line in self.lines) and any(line.number is not None for line in self.lines)

    @property
    def places(self) -> list[Line]:
        """The lines where a comment can stand: added ones, or those around removed ones; no blank lines, no imports."""
        written = [line for line in self.lines if line.text.strip() and not _IMPORT.match(line.text)]
        if added := [line for line in written if line.is_added]:
            return added
        removed = [at for at, line in enumerate(written) if line.sign == "-"]
        around = {near for at in removed for near in (at - 1, at + 1) if 0 <= near < len(written)}
        return [written[at] for at in sorted(around) if written[at].number is not None]


def of_diff(text: str, name: str = "the diff", with_removed: bool = False) -> list[Section]:
    """Return the sections of a unified diff, as `git diff` writes it. Binary files have none.

    Args:
        text: the diff.
        name: what it is called in an error.
        with_removed: also those of removed files.

    Raises:
        DocumentError: it is not a unified diff.
    """
    if _COMBINED.search(text):
        raise DocumentError([Problem("not_a_diff", name, reason="it is the combined diff of a merge")])
    try:
        files = PatchSet([f"{line}\n" for line in text.split("\n")])
    except (UnidiffParseError, ValueError) as error:
        raise DocumentError([Problem("not_a_diff", name, reason=str(error).strip().rstrip("."))]) from error
    if not files and not all(map(_WITHOUT_HUNKS.match, text.split("\n"))) and "\ndiff --git" not in f"\n{text}":
        raise DocumentError([Problem("not_a_diff", name, reason="it has no line that begins with ---")])
    return [section for file in files if with_removed or not file.is_removed_file for section in _of_file(file)]


def _of_file(file: PatchedFile) -> Iterator[Section]:
    path = _path(file)
    for hunk in file:
        lines = tuple(
            Line(each.line_type, each.value.rstrip("\r\n"), each.target_line_no)
            for each in hunk
            if each.line_type in ("+", "-", " ")
        )
        for part in split(Section(path, lines)):
            is_inside = bool(hunk.section_header) and indentation(part.lines[0].text) > 0
            heading = (hunk.section_header,) if is_inside and part.lines[0] is lines[0] else ()
            yield Section(path, part.lines, (*heading, *part.enclosing))


def _path(file: PatchedFile) -> str:
    """Return the path of the new file, which Git puts in quotes if it has unusual characters."""
    path: str = file.path
    if not path.startswith('"'):
        return path
    octets = path.strip('"').encode("latin-1", "replace").decode("unicode_escape").encode("latin-1", "replace")
    return octets.decode(errors="replace").removeprefix("b/").removeprefix("a/")


def of_file(path: str, text: str) -> list[Section]:
    """Return the sections of a whole file, as if every line were added."""
    texts = text.removesuffix("\n").split("\n") if text else []
    lines = tuple(Line("+", line.rstrip("\r"), number) for number, line in enumerate(texts, 1))
    return [*split(Section(path, lines))]


def split(section: Section) -> Iterator[Section]:
    """Yield the parts of a long section: those between blank lines at the smallest indentation, and so on inwards."""
    waiting = [section]
    while waiting:
        each = waiting.pop()
        starts = _starts(each.lines) if len(each.lines) > LONGEST else []
        if len(starts) < 2:
            yield each
            continue
        parts = [
            Section(each.path, each.lines[start:end], (*each.enclosing, *_enclosing(each.lines, start))[-_ENCLOSING:])
            for start, end in zip(starts, [*starts[1:], len(each.lines)], strict=True)
        ]
        waiting += reversed(parts)


def _starts(lines: Sequence[Line]) -> list[int]:
    """Return where parts begin: after blank lines, at the smallest indentation at which there are at least two."""
    after_blank = [
        (indentation(line.text), at)
        for at, line in enumerate(lines)
        if line.text.strip() and (at == 0 or not lines[at - 1].text.strip())
    ]
    if len(after_blank) < 2:
        return [0]
    second = sorted(indentation for indentation, _ in after_blank)[1]
    return [0, *(at for indentation, at in after_blank if at and indentation <= second)]


def _enclosing(lines: Sequence[Line], start: int) -> list[str]:
    """Return the last line before ``start`` that is indented less, and what stands directly below it."""
    depth = indentation(lines[start].text)
    before = range(start - 1, max(start - _FAR, 0) - 1, -1)
    heads = (at for at in before if lines[at].text.strip() and lines[at].sign != "-")
    head = next((at for at in heads if indentation(lines[at].text) < depth), None)
    if head is None:
        return []
    shown = [lines[head].text]
    for line in lines[head + 1 : min(head + 1 + _HEADING, start)]:
        if not line.text.strip():
            break
        shown += [] if line.sign == "-" else [line.text]
    return shown


def indentation(text: str) -> int:
    """Return the columns before the first character of ``text`` that is no space; a tab has four."""
    spaced = text.replace("\t", _TAB)
    return len(spaced) - len(spaced.lstrip())
