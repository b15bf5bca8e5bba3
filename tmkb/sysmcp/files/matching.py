"""Match names and paths with patterns from untrusted clients, in at most quadratic time.

A glob becomes one expression per name; atomic groups keep a star from backtracking. ``**`` tries each name of a path
once. Regular expressions run on RE2, which does not backtrack.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence

Match = Callable[[str], object]  # returns a true or false value for a name or path
_ANY = "**"  # as a name in a glob: any number of names


def glob(pattern: str, exact: bool) -> Match:
    """Match whole names with ``*``, ``?``, ``[…]`` and ``[!…]``, and any number of names with ``**``.

    ``exact``: case-sensitive. Raises ValueError for a pattern that no path has, such as ``a//b``.
    """
    parts = pattern.split("/")
    if "" in parts:
        raise ValueError(pattern)
    flags = 0 if exact else re.IGNORECASE
    steps = [None if part == _ANY else re.compile(fnmatch.translate(part), flags).match for part in parts]
    if len(steps) == 1:
        return steps[0] or (lambda name: True)
    return lambda path: _matches(steps, path.split("/"))


def substring(pattern: str, exact: bool) -> Match:
    """Match ``pattern`` anywhere."""
    if exact:
        return lambda text: pattern in text
    folded = pattern.casefold()
    return lambda text: folded in text.casefold()


def regex(pattern: str, exact: bool) -> Match:
    """Match an RE2 expression anywhere. Raises ModuleNotFoundError without the extra ``regex``, else ValueError."""
    import re2

    options = re2.Options()
    options.case_sensitive = exact
    options.log_errors = False
    try:
        search: Match = re2.compile(pattern, options).search
    except re2.error:
        raise ValueError(pattern) from None
    return search


MODES: dict[str, Callable[[str, bool], Match]] = {"glob": glob, "substring": substring, "regex": regex}


def _matches(steps: Sequence[Match | None], parts: Sequence[str]) -> bool:
    """Match names with steps; None is ``**``. Only the last ``**`` has to be extended by another name."""
    last = steps[-1]
    if last is not None and not last(parts[-1]):  # rejects most paths at once
        return False
    step = part = 0
    retry: tuple[int, int] | None = None
    while part < len(parts):
        if step < len(steps) and steps[step] is None:
            step += 1
            retry = step, part
        elif step < len(steps) and steps[step](parts[part]):  # type: ignore[misc]
            step, part = step + 1, part + 1
        elif retry is not None:
            retry = retry[0], retry[1] + 1
            step, part = retry
        else:
            return False
    return all(rest is None for rest in steps[step:])
