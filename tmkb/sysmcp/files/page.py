"""One page of a search, and the cursor that says where the next one begins.

A cursor holds the mark of the query, the last path that was looked at, and how many were found until then.
"""

from __future__ import annotations

import json

from tmkb.sysmcp import cursor
from tmkb.sysmcp.files import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tmkb.schema.values import JsonObject, JsonValue


_MOST_SEEN = 2**53  # beyond, JSON numbers are not exact everywhere


class Page:
    """What was found, up to ``limit``; those before ``offset`` are counted and left out."""

    def __init__(self, query: JsonObject, limit: int, offset: int, most: int) -> None:
        """``query``: what a cursor of this search is bound to. ``most``: how long the JSON of the page may be."""
        self.query = cursor.mark(json.dumps(query, sort_keys=True))
        self.limit = limit
        self.offset = offset
        self.room = most
        self.root = self.path = ""  # what was looked at last
        self.seen = 0  # how many were found, those of earlier pages included
        self.first = offset  # the number of the first one on this page
        self.found: list[JsonValue] = []
        self.is_full = False

    def resume(self, given: str, roots: Sequence[str]) -> list[str]:
        """Go on where a page of the same search ended: the names of the last path. Raises ToolError for other texts."""
        try:
            state: Any = cursor.unpacked(given)
            query, root, path, seen = state
            if query != self.query or root not in roots or type(seen) is not int or not 0 <= seen < _MOST_SEEN:
                raise ValueError(given)
            after = names.components(path)
        except (ValueError, TypeError, AttributeError):
            cursor.refuse(given)
        self.root, self.path, self.seen = root, path, seen
        self.first = max(self.offset, seen)
        return after

    def take(self, found: JsonObject) -> bool:
        """One more was found. False where the page has no room for it, and so is full."""
        if self.seen >= self.offset:
            self.room -= len(json.dumps(found))
            if len(self.found) == self.limit or (self.found and self.room < 0):
                self.is_full = True
                return False
            self.found.append(found)
        self.seen += 1
        return True

    def answer(self, is_complete: bool) -> JsonObject:
        """The page as it is told. The total is known when all was looked at."""
        answer: JsonObject = {
            "files": self.found,
            "totalCount": self.seen if is_complete else None,
            "complete": is_complete,
            "page": self.first // self.limit + 1,
            "pageSize": self.limit,
        }
        if not is_complete:
            place = json.dumps([self.query, self.root, self.path, self.seen], ensure_ascii=False)
            answer["nextCursor"] = cursor.packed(place)
        if self.is_full:
            answer["nextOffset"] = self.seen
        return answer
