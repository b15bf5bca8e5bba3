"""Rules for coding agents: when to ask TMKB, and the checks that most changes need.

The text is the same for all agents. Each form has the file that its agents read, and what they need at its top.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from tmkb.errors import DocumentError, Problem, SpecError
from tmkb.knowledge.answer import unwrap
from tmkb.knowledge.pattern import Pattern
from tmkb.schema import paths, template, textfile

BEGIN, END = b"<!-- tmkb: begin -->", b"<!-- tmkb: end -->"  # the lines around the rules
_TEMPLATES = os.path.join(os.path.dirname(__file__), "templates")
_USUAL = (
    "007",
    "002",
    "013",
    "012",
    "014",
    "006",
    "016",
    "015",
    "004",
    "001",
    "017",
    "036",
)
_UTF_16 = b"\xff\xfe", b"\xfe\xff"  # the byte order marks; the rules are UTF-8


@dataclass(frozen=True)
class Form:
    """What rules are for one kind of agent.

    Attributes:
        file: the file that the agents read, below the folder of a project, with slashes.
        head: the template of what a new file begins with, before `BEGIN`; empty if nothing.
    """

    file: str
    head: str = ""


FORMS = {
    "claude": Form("CLAUDE.md"),
    "cursor": Form(".cursor/rules/tmkb.mdc", "cursor.md"),
    "copilot": Form(".github/copilot-instructions.md"),
    "agents-md": Form("AGENTS.md"),
}


def usual(ids: Sequence[str]) -> list[str]:
    """Return those of ``ids`` whose checks most changes need."""
    return [id_ for number in _USUAL if (id_ := f"TMKB-AUTH-{number}") in ids]


def head(form: Form) -> str:
    """Return what a new file of ``form`` begins with."""
    return _template(form.head) if form.head else ""


def text(patterns: Sequence[Pattern]) -> str:
    """Return the rules with the checks of ``patterns``, between the lines `BEGIN` and `END`."""
    lines = [f"- {each['id']} {unwrap(each['name'])}: {unwrap(each['agent_summary']['check'])}" for each in patterns]
    filled = template.fill(_template("rules.md"), {"checks": "\n".join(lines)})
    return f"{BEGIN.decode()}\n{filled}{END.decode()}\n"


def place(path: str, form: Form) -> str:
    """Return the file to write for ``path``: in a folder, the file that agents read there."""
    return os.path.join(path, *form.file.split("/")) if os.path.isdir(path) else path


def write(file: str, form: Form, rules: str) -> bool:
    """Write ``rules`` into ``file`` in place of the lines from `BEGIN` to `END`, or after its last line.

    All other bytes stay. The new lines end like the first line of the file. A missing file is created.

    Returns:
        Whether the file has changed.

    Raises:
        DocumentError: the file cannot be read, or is UTF-16.
        SpecError: the file has only one of the two lines, has one twice, or cannot be written.
    """
    before = _content(file)
    after = (head(form) + rules).encode() if before is None else _with(before, rules.encode(), paths.shown(file))
    if after == before:
        return False
    _save(file, after)
    return True


def remove(file: str, form: Form) -> bool:
    """Remove what `write` added to ``file``; delete the file if `write` created it and nothing was added.

    Returns:
        Whether there was something to remove.

    Raises:
        DocumentError: the file cannot be read, or is UTF-16.
        SpecError: the file has only one of the two lines, has one twice, or cannot be written.
    """
    before = _content(file)
    lines = (before or b"").splitlines(keepends=True)
    if (span := _span(lines, paths.shown(file))) is None:
        return False
    begin, end = span
    above = b"".join(lines[:begin]).replace(b"\r\n", b"\n")  # Git may have converted the file
    is_own = above == head(form).encode() and end == len(lines)
    _save(file, None if is_own and not os.path.islink(file) else _without(lines, begin, end))
    return True


def _with(content: bytes, rules: bytes, shown: str) -> bytes:
    lines = content.splitlines(keepends=True)
    ending = b"\r\n" if lines and lines[0].endswith(b"\r\n") else b"\n"
    if span := _span(lines, shown):
        begin, end = span
        inside = [line + ending for line in rules.splitlines()[1:-1]]
        return b"".join([*lines[: begin + 1], *inside, *lines[end - 1 :]])
    block = ending.join(rules.splitlines())
    if lines and not lines[-1].endswith((b"\n", b"\r")):  # then `remove` knows that the last line had no end
        return content + ending + ending + block
    return content + ending + block + ending


def _without(lines: Sequence[bytes], begin: int, end: int) -> bytes:
    """Return ``lines`` without the rules, and without the blank line before them."""
    before = b"".join(lines[:begin])
    separators = 1 if lines[end - 1].endswith((b"\n", b"\r")) else 2
    blank = begin > 0 and not lines[begin - 1].strip()
    for _ in range(separators if blank else 0):
        before = before.removesuffix(b"\n").removesuffix(b"\r")
    return before + b"".join(lines[end:])


def _span(lines: Sequence[bytes], shown: str) -> tuple[int, int] | None:
    """Return the index of the line `BEGIN` and the one after `END`; None if there is neither."""
    begins, ends = ([at for at, line in enumerate(lines) if line.strip() == marker] for marker in (BEGIN, END))
    if not begins and not ends:
        return None
    if len(begins) != 1 or len(ends) != 1 or begins > ends:
        markers = {"begin": BEGIN.decode(), "end": END.decode()}
        raise SpecError([Problem.of_argument("no_markers", "--output", file=shown, **markers)])
    return begins[0], ends[0] + 1


def _content(file: str) -> bytes | None:
    """Return the content of ``file``; None if it is missing."""
    target, shown = os.path.realpath(file), paths.shown(file)  # CLAUDE.md can be a link to AGENTS.md
    content = textfile.read_bytes(target, shown) if os.path.lexists(target) else None
    if content is not None and content.startswith(_UTF_16):
        raise DocumentError([Problem("not_utf8", shown, 1, 1)])
    return content


def _save(file: str, content: bytes | None) -> None:
    try:
        textfile.save(os.path.realpath(file), content)
    except OSError as error:
        reason = error.strerror or str(error)
        raise SpecError(
            [Problem.of_argument("not_written", "--output", folder=paths.shown(file), reason=reason)]
        ) from error


def _template(name: str) -> str:
    with open(os.path.join(_TEMPLATES, name), encoding="utf-8") as file:
        return file.read()
