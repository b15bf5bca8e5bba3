"""What differs between two resolved documents of one kind, place by place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tmkb.document import Path
from tmkb.values import JsonValue


@dataclass(frozen=True, slots=True)
class Change:
    """One place that is not the same: `before` or `after` is None where it is added or removed."""

    path: Path
    before: JsonValue
    after: JsonValue

    @property
    def sign(self) -> str:
        """``+`` added, ``-`` removed, ``~`` changed."""
        return "+" if self.before is None else "-" if self.after is None else "~"


def changes(before: Any, after: Any, path: Path = ()) -> Iterator[Change]:
    """Every change from ``before`` to ``after``. Maps are compared key by key, all else as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from changes(before.get(key), after.get(key), (*path, key))
    elif before != after:
        yield Change(path, before, after)
