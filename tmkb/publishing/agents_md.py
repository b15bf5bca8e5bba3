"""Instructions for AGENTS.md or CLAUDE.md: when to ask TMKB, and the checks that most changes need."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tmkb.errors import Problem, SpecError
from tmkb.knowledge.answer import unwrap
from tmkb.knowledge.pattern import Pattern
from tmkb.schema import paths, template, textfile

BEGIN, END = b"<!-- tmkb: begin -->", b"<!-- tmkb: end -->"  # the lines around the instructions
_TEXT = os.path.join(os.path.dirname(__file__), "templates", "agents.md")
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


def usual(ids: Sequence[str]) -> list[str]:
    """Return those of ``ids`` whose checks most changes need."""
    return [id_ for number in _USUAL if (id_ := f"TMKB-AUTH-{number}") in ids]


def text(patterns: Sequence[Pattern]) -> str:
    """Return the instructions with the checks of ``patterns``, between the lines `BEGIN` and `END`."""
    lines = [f"- {each['id']} {unwrap(each['name'])}: {unwrap(each['agent_summary']['check'])}" for each in patterns]
    with open(_TEXT, encoding="utf-8") as file:
        filled = template.fill(file.read(), {"checks": "\n".join(lines)})
    return f"{BEGIN.decode()}\n{filled}{END.decode()}\n"


def write(file: str, instructions: str) -> bool:
    """Write ``instructions`` into ``file`` in place of the lines from `BEGIN` to `END`; a missing file is created.

    All other bytes stay. The new lines end like the line `BEGIN`.

    Returns:
        Whether the file has changed.

    Raises:
        DocumentError: the file cannot be read.
        SpecError: the file has not one line `BEGIN` and after it one line `END`, or it cannot be written.
    """
    target = os.path.realpath(file)  # CLAUDE.md can be a link to AGENTS.md
    shown = paths.shown(file)
    before = textfile.read_bytes(target, shown) if os.path.lexists(target) else None
    after = instructions.encode() if before is None else _spliced(before, instructions.encode(), shown)
    if after == before:
        return False
    try:
        textfile.save(target, after)
    except OSError as error:
        reason = error.strerror or str(error)
        raise SpecError([Problem.of_argument("not_written", "--output", folder=shown, reason=reason)]) from error
    return True


def _spliced(content: bytes, instructions: bytes, shown: str) -> bytes:
    lines = content.splitlines(keepends=True)
    begins, ends = ([at for at, line in enumerate(lines) if line.strip() == marker] for marker in (BEGIN, END))
    if len(begins) != 1 or len(ends) != 1 or begins > ends:
        markers = {"begin": BEGIN.decode(), "end": END.decode()}
        raise SpecError([Problem.of_argument("no_markers", "--output", file=shown, **markers)])
    (begin,), (end,) = begins, ends
    inside = instructions.splitlines()[1:-1]
    ending = b"\r\n" if lines[begin].endswith(b"\r\n") else b"\n"
    return b"".join([*lines[: begin + 1], *(line + ending for line in inside), *lines[end:]])
