"""One change of the registry: the checked arguments, and the edit they cause in a hive."""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple

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

_SECRET = ("data", "expected")  # arguments that the audit log replaces by a hash
_INVALID = "\ufffd"  # replaces invalid UTF-16
_ALL = 1 << 32  # more values than a hive can hold


class Change:
    """The arguments of a change. Raises ToolError if they are invalid or do not fit each other."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.path: str = arguments["path"]
        self.action: str = arguments.get("action", "set")
        self.name: str = arguments.get("valueName", "")
        self.is_dry = bool(arguments.get("dryRun"))
        self.creates_parents = bool(arguments.get("createMissing"))
        self.arguments = arguments
        for argument, text in (("path", self.path), ("valueName", self.name)):
            if not keypath.is_text(text) or _INVALID in text:
                raise _invalid(argument, "text without control characters and invalid characters")
        for argument in ("type", "data"):
            if self.action == "set" and argument not in arguments:
                raise _invalid(argument, "present if the action is set")
            if self.action != "set" and argument in arguments:
                raise _invalid(argument, "left out unless the action is set")
        self.row: Row | None = self._row() if self.action == "set" else None

    def _row(self) -> Row:
        type_ = self.arguments["type"]
        try:
            raw = value.to_bytes(type_, self.arguments["data"])
        except value.Mismatch:
            expected = value.EXPECTED[type_]
            raise ToolError("data_mismatch", path="arguments.data", type=type_, expected=expected) from None
        if len(raw) > value.ONE_CELL:
            raise ToolError("value_too_large", limit=value.ONE_CELL)
        return self.name, value.NAMES.index(type_), raw

    def edit(self, hive: Hive, names: Sequence[str]) -> Generator[Pause, None, Edit]:
        """Return the edit of the key at ``names`` in ``hive``. Raises ToolError, Corrupt."""
        trail = yield from hive.trail([*names])
        missing = names[len(trail) - 1 :]
        self._check_missing(missing)
        rows = [] if missing or self.action == "createKey" else (yield from _rows(hive, trail[-1]))
        at = next((i for i, row in enumerate(rows) if keypath.folded(row[0]) == keypath.folded(self.name)), len(rows))
        before = rows[at] if at < len(rows) else None
        self._check_current(before, not missing)
        path = [_exact(key.name) for key in trail[1:]]
        if self.action == "createKey":
            return Edit(trail, path, missing, None, None, None)
        row = self.row and (before[0] if before else self.row[0], *self.row[1:])
        after = [*rows[:at], *([row] if row else []), *rows[at + 1 :]]
        return Edit(trail, path, missing, before, row, after if missing or after != rows else None)

    def _check_missing(self, missing: Sequence[str]) -> None:
        """Raise ToolError if keys are missing that the change may not create."""
        if self.creates_parents:
            may_create = self.action != "deleteValue"
        else:
            may_create = self.action == "createKey" and len(missing) == 1
        if missing and not may_create:
            raise ToolError("key_not_found", path=self.path)

    def _check_current(self, row: Row | None, has_key: bool) -> None:
        """Compare the current value with the argument ``expected``; for createKey, whether the key exists."""
        if "expected" in self.arguments:
            expected = self.arguments["expected"]
            if self.action == "createKey":
                is_expected = expected is None and not has_key
            else:
                is_expected = _is(value.type_name(row[1]), row[2], expected) if row else expected is None
            if not is_expected:
                raise ToolError("value_changed", path=self.path, name=self.name)
        if self.action == "deleteValue" and row is None:
            raise ToolError("value_not_found", path=self.path, name=self.name)

    def result(self, edit: Edit, backup: str | None) -> JsonObject:
        """Return the result for the client."""
        return {
            "path": self.path,
            "action": self.action,
            "valueName": self.name,
            "old": edit.before and describe(*edit.before),
            "new": edit.row and describe(*edit.row),
            "backup": backup,
            "dryRun": self.is_dry,
        }


class Edit(NamedTuple):
    """The edit of a hive: create the keys ``new`` below ``trail``, then replace all values of the last key.

    ``names``: those of ``trail`` below the root. ``before`` and ``row``: the changed value before and afterwards.
    ``after``: the new values; None if they stay.
    """

    trail: Sequence[Key]
    names: Sequence[str]
    new: Sequence[str]
    before: Row | None
    row: Row | None
    after: Sequence[Row] | None

    @property
    def is_needed(self) -> bool:
        """Whether the hive has to change."""
        return bool(self.new) or self.after is not None

    def is_in(self, hive: Hive) -> Generator[Pause, None, bool]:
        """Return whether ``hive`` contains the result of the edit."""
        names = [*self.names, *self.new]
        trail = yield from hive.trail(names)
        if hive.is_dirty or [key.name for key in trail[1:]] != names:
            return False
        rows = yield from _rows(hive, trail[-1])
        return self.after is None or rows == [*self.after]


def describe(name: str, type_: int, raw: bytes, size: int | None = None) -> JsonObject:
    """Describe a value for a client; ``size``: its bytes, if ``raw`` is truncated."""
    is_whole = size is None or size == len(raw)
    return {
        "name": name,
        "type": value.type_name(type_),
        **value.to_json(value.type_name(type_), raw, is_whole),
        "size": len(raw) if size is None else size,
        **({} if is_whole else {"truncated": True}),
    }


def redact(arguments: Mapping[str, JsonValue]) -> JsonObject:
    """Return ``arguments`` for the audit log, with data replaced by its type, size and hash."""
    type_ = arguments.get("type")
    return {name: _digest(type_, each) if name in _SECRET else each for name, each in arguments.items()}


def _digest(type_: JsonValue, data: JsonValue) -> JsonObject:
    """Hash the bytes that a hive would store; if the type cannot hold the data, hash its JSON text."""
    try:
        raw = value.to_bytes(str(type_), data)
    except value.Mismatch:
        raw = json.dumps(data).encode()
    return {"type": type_, "size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}


def _invalid(argument: str, expected: str) -> ToolError:
    return ToolError("bad_argument", path=f"arguments.{argument}", expected=expected)


def _rows(hive: Hive, key: Key) -> Generator[Pause, None, list[Row]]:
    """Return all values of ``key``. Raises ToolError, Corrupt for a value that cannot be written back."""
    from tmkb.sysmcp.registry.hive import select

    rows: list[Row] = []
    for each in (yield from select(hive, key.values(), _ALL)):
        if each.size > value.ONE_CELL:
            raise ToolError("value_too_large", limit=value.ONE_CELL)
        rows.append((_exact(each.name), each.type, each.data(each.size)))
        if len(rows[-1][2]) != each.size:
            raise Corrupt
    return rows


def _exact(name: str) -> str:
    """Return ``name``. Raises Corrupt if it was not decoded exactly, or is no C string."""
    if "\0" in name or _INVALID in name:
        raise Corrupt
    return name


def _is(type_: str, raw: bytes, expected: JsonValue) -> bool:
    """Return whether a value equals ``expected``; a large integer is a string in JSON, but may be given as a number."""
    current = value.to_json(type_, raw)["data"]
    if type_ == "REG_QWORD" and isinstance(expected, int) and isinstance(current, str):
        return str(expected) == current
    return type(expected) is type(current) and expected == current
