"""Short names of patterns: 7 and auth-7 name TMKB-AUTH-007."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_NUMBERED = re.compile(r"(?:(.+)-)?([0-9]{1,9})")


def is_name(word: str, id_: str) -> bool:
    """Return whether ``word`` is ``id_`` in any case, or its last parts. The number needs no leading zeros."""
    word = _normal(word)
    form = _NUMBERED.fullmatch(word)
    if word == id_ or form is None:
        return word == id_
    prefix, _, number = f"-{id_}".rpartition("-")
    return int(form[2]) == int(number) and prefix.endswith(f"-{form[1]}" if form[1] else "")


def matching(word: str, ids: Collection[str]) -> tuple[list[str], Collection[str]]:
    """Return the ids that ``word`` names, and those of which it may be a misspelling: if it has a number, its own."""
    word = _normal(word)
    form = _NUMBERED.fullmatch(word)
    found = [word] if word in ids else [id_ for id_ in ids if is_name(word, id_)]
    return found, ids if form is None else [id_ for id_ in ids if is_name(form[2], id_)]


def _normal(word: str) -> str:
    return word.strip().upper().replace("_", "-")  # folders of patterns have underscores
