"""Comments that somebody has decided about: in the code, with a reason, or all of an earlier day, in a baseline."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tmkb.errors import DocumentError, Problem
from tmkb.knowledge import ids

if TYPE_CHECKING:
    from tmkb.review.changes import Section
    from tmkb.review.judge import Comment

_IGNORE = re.compile(r"tmkb:\s*ignore\[([^\]\n]*)\][ \t:-]*(.*)")
_END = re.compile(r"\s*(\*/|-->|--}}|%>|#}|\*\)).*$")  # of a comment in a language that closes them
_IN_COMMENT = re.compile(r"[ \t]*(#|//|--|/\*|<!--|<%#|\{#)?[ \t]*" + _IGNORE.pattern)


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


def without_ignores(text: str) -> str:
    """Return ``text`` without comments that ignore patterns; they say nothing about the code."""
    return _IN_COMMENT.sub("", text)


def faults(ignored: Ignored, known: Collection[str]) -> list[str]:
    """Return what is wrong with a comment in the code. ``known``: the ids of all patterns."""
    found = [f"there is no pattern {name}" for name in ignored.patterns if not ids.matching(name, known)[0]]
    found += [] if ignored.patterns else ["it names no pattern"]
    found += [] if ignored.reason else ["it has no reason behind the bracket"]
    return found


def is_ignored(comment: Comment, ignored: Iterable[Ignored]) -> bool:
    """Return whether the code ignores ``comment`` with a reason. A pattern can be named by its number alone."""
    return any(each.reason and any(ids.is_name(name, comment.pattern) for name in each.patterns) for each in ignored)


def baseline(name: str, text: str) -> Counter[str]:
    """Return how often each fingerprint is in a baseline.

    Args:
        name: the file's name in an error.
        text: what `write` returned.

    Raises:
        DocumentError: it is not a baseline.
    """
    try:
        value: Any = json.loads(text)
        return Counter(str(each["fingerprint"]) for each in value["comments"])
    except (ValueError, LookupError, TypeError) as error:
        raise DocumentError([Problem("not_a_baseline", name)]) from error


def new(comments: Sequence[Comment], before: Counter[str]) -> list[Comment]:
    """Return the comments that are not in the baseline ``before``. Equal lines are counted."""
    left = before.copy()
    found = []
    for comment in comments:
        if left[comment.fingerprint] > 0:
            left[comment.fingerprint] -= 1
        else:
            found.append(comment)
    return found


def write(comments: Iterable[Comment]) -> str:
    """Return the text of a baseline with ``comments``."""
    listed = sorted((each.path, each.pattern, each.fingerprint) for each in comments)
    rows = [{"path": path, "pattern": pattern, "fingerprint": mark} for path, pattern, mark in listed]
    return json.dumps({"comments": rows}, indent=1, ensure_ascii=False) + "\n"
