"""One change of the registry: what a client asks for, judged before anything is opened, and then against the hive."""

from __future__ import annotations

import hashlib
import json

from tmkb.errors import ToolError
from tmkb.sysmcp.faults import Corrupt
from tmkb.sysmcp.registry import keypath, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from typing import Any

    from tmkb.providers.operation import Pause
    from tmkb.schema.values import JsonObject, JsonValue
    from tmkb.sysmcp.registry.hive import Hive, Key

    Row = tuple[str, int, bytes]  # a value: its name, the number of its type, its bytes

_SECRET = ("data", "expected")  # arguments that the audit log has only the size and the hash of
_UNREADABLE = "\ufffd"  # in the place of what is no UTF-16
_ALL = 1 << 32  # values; a hive cannot hold as many


class Change:
    """What the arguments ask for. Raises ToolError where they do not fit each other."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.path: str = arguments["path"]
        self.action: str = arguments.get("action", "set")
        self.name: str = arguments.get("valueName", "")
        self.is_dry = bool(arguments.get("dryRun"))
        self.creates_parents = bool(arguments.get("createMissing"))
        self.arguments = arguments
        for given, text in (("path", self.path), ("valueName", self.name)):
            if not keypath.is_text(text) or _UNREADABLE in text:
                raise ToolError("bad_argument", path=f"arguments.{given}", expected="of whole, printable characters")
        for given in ("type", "data"):
            if self.action == "set" and given not in arguments:
                raise ToolError("bad_argument", path=f"arguments.{given}", expected="what is to be set")
            if self.action != "set" and given in arguments:
                raise ToolError("bad_argument", path=f"arguments.{given}", expected="nothing, unless the action is set")
        self.row: Row | None = self._row() if self.action == "set" else None

    def _row(self) -> Row:
        type_, data = self.arguments["type"], self.arguments["data"]
        try:
            raw = value.to_bytes(type_, data)
        except value.Mismatch:
            raise ToolError(
                "data_mismatch", path="arguments.data", type=type_, expected=value.EXPECTED[type_]
            ) from None
        if len(raw) > value.ONE_CELL:
            raise ToolError("value_too_large", limit=value.ONE_CELL)
        return self.name, value.NAMES.index(type_), raw

    def edit(self, hive: Hive, names: Sequence[str]) -> Generator[Pause, None, Edit]:
        """What it comes to in ``hive``, for the key at ``names``. Raises ToolError where it cannot be, or must not."""
        trail = yield from hive.trail([*names])
        missing = names[len(trail) - 1 :]
        self._judge_missing(missing)
        rows = [] if missing or self.action == "createKey" else (yield from _rows(hive, trail[-1]))
        at = next((i for i, row in enumerate(rows) if keypath.folded(row[0]) == keypath.folded(self.name)), len(rows))
        self._judge_present(rows[at : at + 1], not missing)
        if self.action == "createKey":
            return Edit(trail, missing, None, None, None)
        before = rows[at] if at < len(rows) else None
        row = self.row and (before[0] if before else self.row[0], *self.row[1:])
        after = [*rows[:at], *([row] if row else []), *rows[at + 1 :]]
        return Edit(trail, missing, before, row, after if missing or after != rows else None)

    def _judge_missing(self, missing: Sequence[str]) -> None:
        """The key itself may be missing where it is to be created; others only by leave."""
        creatable = (self.action == "createKey") if not self.creates_parents else (self.action != "deleteValue")
        most = len(missing) if self.creates_parents else 1
        if missing and not (creatable and len(missing) <= most):
            raise ToolError("key_not_found", path=self.path)

    def _judge_present(self, present: Sequence[Row], has_key: bool) -> None:
        """Whether what is there is what the client expects to be; for createKey that is the key."""
        if "expected" in self.arguments:
            expected = self.arguments["expected"]
            if self.action == "createKey":
                is_so = expected is None and not has_key
            elif present:
                _, type_, raw = present[0]
                is_so = _is(value.type_name(type_), raw, expected)
            else:
                is_so = expected is None
            if not is_so:
                raise ToolError("value_changed", path=self.path, name=self.name)
        if self.action == "deleteValue" and not present:
            raise ToolError("value_not_found", path=self.path, name=self.name)

    def answer(self, edit: Edit, backup: str | None) -> JsonObject:
        """What the client is told."""
        return {
            "path": self.path,
            "action": self.action,
            "valueName": self.name,
            "old": edit.before and shown(*edit.before),
            "new": edit.row and shown(*edit.row),
            "backup": backup,
            "dryRun": self.is_dry,
        }


class Edit:
    """A change as it is made: below the keys of ``trail`` keys called ``new``, in the last one the values ``after``.

    ``before`` and ``row``: the value that is meant, as it was and as it is to be. ``after``: None where they stay.
    """

    def __init__(
        self,
        trail: Sequence[Key],
        new: Sequence[str],
        before: Row | None,
        row: Row | None,
        after: Sequence[Row] | None,
    ) -> None:
        self.trail = trail
        self.names = [_exact(key.name) for key in trail[1:]]
        self.new, self.before, self.row, self.after = new, before, row, after
        self.is_needed = bool(new) or after is not None

    def is_in(self, hive: Hive) -> Generator[Pause, None, bool]:
        """Whether ``hive`` is how it is to be, as far as the edit reaches."""
        trail = yield from hive.trail([*self.names, *self.new])
        is_there = [key.name for key in trail[1:]] == [*self.names, *self.new] and not hive.is_dirty
        rows = (yield from _rows(hive, trail[-1])) if is_there else []
        return is_there and (self.after is None or rows == [*self.after])


def shown(name: str, type_: int, raw: bytes, size: int | None = None) -> JsonObject:
    """A value for a client; ``size``, where some of its bytes are not in ``raw``."""
    whole = size is None or size == len(raw)
    told: JsonObject = {
        "name": name,
        "type": value.type_name(type_),
        **value.to_json(value.type_name(type_), raw, whole),
    }
    return {**told, "size": len(raw) if size is None else size, **({} if whole else {"truncated": True})}


def recorded(arguments: Mapping[str, JsonValue]) -> JsonObject:
    """``arguments`` for the audit log: of data only what kind it is, its size and its hash."""
    type_ = arguments.get("type")
    return {name: _digest(type_, given) if name in _SECRET else given for name, given in arguments.items()}


def _digest(type_: JsonValue, given: JsonValue) -> JsonObject:
    """Of the bytes that a hive would hold; of the JSON text where the type cannot hold it."""
    try:
        raw = value.to_bytes(str(type_), given)
    except value.Mismatch:
        raw = json.dumps(given).encode()
    return {"type": type_, "size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}


def _rows(hive: Hive, key: Key) -> Generator[Pause, None, list[Row]]:
    """All values of ``key``, whole. Raises ToolError for those that would not survive being written again."""
    from tmkb.sysmcp.registry.hive import page

    rows: list[Row] = []
    for found in (yield from page(hive, key.values(), 0, _ALL)):
        if found.size > value.ONE_CELL:
            raise ToolError("value_too_large", limit=value.ONE_CELL)
        rows.append((_exact(found.name), found.type, found.data(found.size)))
        if len(rows[-1][2]) != found.size:
            raise Corrupt
    return rows


def _exact(name: str) -> str:
    """``name``, if it is what stands in the hive and can be handed on as a C string. Raises Corrupt."""
    if "\0" in name or _UNREADABLE in name:
        raise Corrupt
    return name


def _is(type_: str, raw: bytes, expected: JsonValue) -> bool:
    """Whether a value is told as ``expected``; a large integer may also be a number."""
    present = value.to_json(type_, raw)["data"]
    if type_ == "REG_QWORD" and isinstance(expected, int) and isinstance(present, str):
        return str(expected) == present
    return type(expected) is type(present) and expected == present
