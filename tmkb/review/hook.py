"""The hook that a coding agent runs after each edit: what was changed, and what the agent reads about it.

The format is that of a PostToolUse hook of Claude Code: https://code.claude.com/docs/en/hooks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tmkb.review import changes, sarif
from tmkb.review.changes import Line, Section
from tmkb.review.judge import Comment
from tmkb.schema import template

LARGEST = 1 << 24  # bytes of an event, which contains the file twice
MOST = 100  # sections of an edit that are reviewed, because the agent waits
_EVENT = "PostToolUse"
_CONTEXT = 8  # unchanged lines around a change, which can contain the check
_SHOWN = 3  # comments on one edit
_TEXT = os.path.join(os.path.dirname(__file__), "hook.md")


def sections(event: Mapping[str, Any]) -> Iterator[Section]:
    """Yield the changed sections of the file that a tool wrote or edited.

    Args:
        event: what the agent writes to the stdin of a hook, with ``cwd`` and ``tool_response``.

    Raises:
        KeyError, TypeError: it has another shape.
    """
    done = event["tool_response"]
    path = _below(done["filePath"], event["cwd"])
    if done.get("type") == "create":
        yield from changes.of_file(path, done["content"])
        return
    text = (done.get("originalFile") or "").removesuffix("\n")
    before = text.split("\n") if text else []
    hunks = done["structuredPatch"]
    starts = [max(hunk["oldStart"] - 1, 0) for hunk in hunks]
    ends = [start + hunk["oldLines"] for start, hunk in zip(starts, hunks, strict=True)]
    around = zip(hunks, [0, *ends], starts, ends, [*starts[1:], len(before)], strict=False)
    for hunk, free, start, end, following in around:  # lines before `free` and from `following` are of other hunks
        above, below = before[max(free, start - _CONTEXT) : start], before[end : min(following, end + _CONTEXT)]
        lines = [*(f" {line}" for line in above), *hunk["lines"], *(f" {line}" for line in below)]
        yield from changes.split(Section(path, tuple(_numbered(lines, hunk["newStart"] - len(above)))))


def answer(comments: Sequence[Comment], names: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what the hook prints for the agent; None if there are no comments.

    Args:
        comments: those on the edit; the most probable are shown.
        names: id → name of the pattern.
    """
    if not comments:
        return None
    shown = sorted(comments, key=lambda each: -(each.probability or 0))[:_SHOWN]
    lines = [f"{each.path}:{each.line}: {each.pattern} {names[each.pattern]}. {sarif.message(each)}" for each in shown]
    with open(_TEXT, encoding="utf-8") as file:
        text = template.fill(file.read(), {"comments": "\n".join(lines)})
    return {"hookSpecificOutput": {"hookEventName": _EVENT, "additionalContext": text}}


def _below(path: str, folder: str) -> str:
    """Return ``path`` relative to ``folder`` if it is inside, with slashes."""
    top = folder.rstrip(os.sep) + os.sep
    return path.removeprefix(top).replace(os.sep, "/")


def _numbered(lines: Sequence[str], first: int) -> Iterator[Line]:
    """Yield lines with a sign as those of a section; ``first``: the number of the first in the new file."""
    number = max(first, 1)
    for line in lines:
        sign, text = line[:1], line[1:].rstrip("\r")
        if sign == "-":
            yield Line(sign, text, None)
        elif sign in ("+", " "):  # not `\ No newline at end of file`
            yield Line(sign, text, number)
            number += 1
