"""Whether a name or a path matches a pattern, in time that grows with its length and not beyond.

The pattern comes from a stranger. A glob becomes one expression per name, in which what a star has passed is not given
back (atomic groups), and ``**`` tries each name of a path once; expressions are run by RE2, which has no other way.
"""

from __future__ import annotations

import fnmatch
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Match = Callable[[str], object]  # true or false of a name or a path

_ANY = "**"  # as a name in a glob: any names, also none


def glob(pattern: str, exact: bool) -> Match:
    """``*``, ``?``, ``[…]`` and ``[!…]`` within a name, ``**`` for any names between slashes; of the whole.

    ``exact``: letters match only their own case. Raises ValueError for a pattern that no path has, as ``a//b``.
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
    """The pattern anywhere."""
    if exact:
        return lambda text: pattern in text
    folded = pattern.casefold()
    return lambda text: folded in text.casefold()


def regex(pattern: str, exact: bool) -> Match:
    """An expression of RE2, anywhere. Raises ModuleNotFoundError without the extra ``regex``, else ValueError."""
    import re2

    options = re2.Options()
    options.case_sensitive = exact
    options.log_errors = False
    try:
        found: Match = re2.compile(pattern, options).search
    except re2.error:
        raise ValueError(pattern) from None
    return found


MODES: dict[str, Callable[[str, bool], Match]] = {"glob": glob, "substring": substring, "regex": regex}


def _matches(steps: Sequence[Match | None], parts: Sequence[str]) -> bool:
    """Whether names match one by one; only the last ``**`` that was met ever has to take one more."""
    last = steps[-1]
    if last is not None and not last(parts[-1]):  # soon told of most paths
        return False
    step = part = 0
    retry: tuple[int, int] | None = None
    while part < len(parts):
        wanted = steps[step] if step < len(steps) else _nothing
        if wanted is None:
            step += 1
            retry = step, part
        elif wanted(parts[part]):
            step, part = step + 1, part + 1
        elif retry is not None:
            retry = retry[0], retry[1] + 1
            step, part = retry
        else:
            return False
    return all(rest is None for rest in steps[step:])


def _nothing(name: str) -> bool:
    return False
