"""Remember what a function returns for texts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

CHARACTERS = 50_000  # of the texts that are remembered by one function


class Memo(dict[str, "Any"]):
    """What ``find`` returns for texts, for `CHARACTERS` of them; then it begins anew.

    `functools.lru_cache` would do the same, but importing `functools` slows down each start.
    """

    def __init__(self, find: Callable[[str], Any]) -> None:
        self.find = find
        self.characters = 0

    def __missing__(self, text: str) -> Any:
        self.characters += len(text)
        if self.characters > CHARACTERS:
            self.clear()
            self.characters = len(text)
        found = self[text] = self.find(text)
        return found
