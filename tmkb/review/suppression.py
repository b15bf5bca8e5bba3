"""Comments that somebody has decided about: in the code, with a reason, or all of an earlier day, in a baseline."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from tmkb.errors import DocumentError, Problem
from tmkb.review.changes import Section
from tmkb.review.judge import Comment

_IGNORE = re.compile(r"tmkb:\s*ignore\[([^\]]*)\][ \t:-]*(.*)")
_END = re.compile(r"\s*(\*/|-->|--}}|%>|#}|\*\)).*$")  # of a comment in a language that closes them


class Ignored(NamedTuple):
    """A comment in the code that ignores patterns. ``line``: in the new file. Without ``reason`` it has no effect."""

    path: str
    line: int
    patterns: tuple[str, ...]
    reason: str


def in_code(section: Section) -> list[Ignored]:
    """Return what the lines of ``section`` ignore: ``tmkb: ignore[TMKB-AUTH-007] reason``, several ids with commas."""
    found = []
    for line in section.lines:
        if line.number is not None and (match := _IGNORE.search(line.text)):
            patterns = tuple(name.strip().upper() for name in match[1].split(",") if name.strip())
            found.append(Ignored(section.path, line.number, patterns, _END.sub("", match[2]).strip()))
    return found


def is_ignored(comment: Comment, ignored: Iterable[Ignored]) -> bool:
    """Return whether the code ignores ``comment`` with a reason. A pattern can be named by its number alone."""
    number = comment.pattern.rpartition("-")[2]
    return any(
        each.reason and any(name == comment.pattern or name.zfill(len(number)) == number for name in each.patterns)
        for each in ignored
    )


def baseline(name: str, text: str) -> set[str]:
    """Return the fingerprints of a baseline.

    Args:
        name: the file's name in an error.
        text: what `write` returned.

    Raises:
        DocumentError: it is not a baseline.
    """
    try:
        value: Any = json.loads(text)
        return {str(each["fingerprint"]) for each in value["comments"]}
    except (ValueError, LookupError, TypeError) as error:
        raise DocumentError([Problem("not_a_baseline", name, 1, 1)]) from error


def write(comments: Iterable[Comment]) -> str:
    """Return the text of a baseline with ``comments``."""
    listed = sorted((each.path, each.pattern, each.fingerprint) for each in comments)
    rows = [{"path": path, "pattern": pattern, "fingerprint": mark} for path, pattern, mark in listed]
    return json.dumps({"comments": rows}, indent=1, ensure_ascii=False) + "\n"
