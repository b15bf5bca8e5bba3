"""One page of a search, and the cursor of the next page.

A cursor holds the digest of the query, the last path that was examined, and the number of hits so far.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tmkb.schema.values import JsonObject, JsonValue
from tmkb.sysmcp import cursor
from tmkb.sysmcp.files import names

_MAX_COUNT = 2**53  # not all JSON readers have larger integers


class Page:
    """Up to ``limit`` hits; the first ``offset`` hits are counted and left out."""

    def __init__(self, query: JsonObject, limit: int, offset: int, room: int) -> None:
        """``query``: the arguments that a cursor is bound to. ``room``: maximum JSON characters of the hits."""
        self.query = cursor.digest(json.dumps(query, sort_keys=True))
        self.limit, self.offset, self.room = limit, offset, room
        self.root = self.path = ""  # of the last entry that was examined
        self.count = 0  # hits, with those of earlier pages
        self.first = offset  # number of the first hit on this page
        self.files: list[JsonValue] = []
        self.is_full = False

    def resume(self, text: str, roots: Sequence[str]) -> list[str]:
        """Continue where the page with the cursor ``text`` ended. Return the names of the last path.

        Raises ToolError.
        """
        try:
            state: Any = cursor.decode(text)
            query, root, path, count = state
            if query != self.query or root not in roots or type(count) is not int or not 0 <= count < _MAX_COUNT:
                raise ValueError(text)
            after = names.split(path)
        except (ValueError, TypeError, AttributeError):
            cursor.reject(text)
        self.root, self.path, self.count = root, path, count
        self.first = max(self.offset, count)
        return after

    def add(self, hit: JsonObject) -> bool:
        """Add a hit. Return False if the page has no room for it."""
        if self.count >= self.offset:
            self.room -= len(json.dumps(hit))
            if len(self.files) == self.limit or (self.files and self.room < 0):
                self.is_full = True
                return False
            self.files.append(hit)
        self.count += 1
        return True

    def result(self, is_complete: bool) -> JsonObject:
        """Return the page for the client. The total is known only after a complete search."""
        result: JsonObject = {
            "files": self.files,
            "totalCount": self.count if is_complete else None,
            "complete": is_complete,
            "page": self.first // self.limit + 1,
            "pageSize": self.limit,
        }
        if not is_complete:
            state = json.dumps([self.query, self.root, self.path, self.count], ensure_ascii=False)
            result["nextCursor"] = cursor.encode(state)
        if self.is_full:
            result["nextOffset"] = self.count
        return result
