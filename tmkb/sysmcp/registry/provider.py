"""The provider ``hives``: read registry keys, and write values where the administrator permits it.

`mounts` decides what is permitted, `change` what a write does. `hive` reads hives, `hivex` writes them, `replacement`
replaces the file, and `live` accesses the registry of a running Windows.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager

from tmkb.errors import ToolError
from tmkb.providers.operation import Pause
from tmkb.sysmcp import plainfile
from tmkb.sysmcp.audit import AuditedProvider
from tmkb.sysmcp.budget import limited
from tmkb.sysmcp.faults import Changed, Corrupt, TimeUp, TooLarge, WriterMissing
from tmkb.sysmcp.registry import change, keypath
from tmkb.sysmcp.registry.mounts import Mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from typing import Any, ClassVar

    from tmkb.providers.base import Prepared
    from tmkb.providers.operation import Operation, StepGenerator
    from tmkb.schema.values import JsonObject, JsonValue
    from tmkb.sysmcp.audit import Call
    from tmkb.sysmcp.registry.hive import Hive, Key, Value
    from tmkb.sysmcp.registry.live import Live
    from tmkb.sysmcp.registry.mounts import Location
    from tmkb.sysmcp.registry.replacement import Replacement

    Steps = Generator[Pause, None, JsonObject]

_SETTLED = 2.0  # seconds after which another change of a file alters its times, even coarse ones


class Hives(AuditedProvider):
    """Registry keys below the mounts."""

    operations: ClassVar = {"read": (), "write": ()}

    def __init__(self, settings: Mapping[str, Any], part: Callable[[str], JsonObject]) -> None:
        super().__init__(settings, part)
        self.mounts = Mounts(settings)
        self.cached: tuple[tuple[int, ...] | None, bytearray] = None, bytearray()  # the hive that was read last

    @classmethod
    def prepare(cls, settings: Mapping[str, Any]) -> Prepared:
        """Return a log line that names the mounts."""
        mounts = settings["mounts"]
        names = mounts if isinstance(mounts, str) else ", ".join(f"{path} ({file})" for path, file in mounts.items())
        fields = {"mounts": names, "mode": settings["mode"]}
        return {"notes": [["serves_hives", fields] if names else ["serves_no_hives", {}]]}

    def operation(self, name: str, definition: Mapping[str, Any]) -> Operation:
        """Return the operation ``name`` with a time limit, recorded as the tool in ``definition``."""
        run: Callable[[Mapping[str, Any], Call], Steps] = {"read": self._read, "write": self._write}[name]
        seconds = self.settings["seconds"]

        def operation(**arguments: JsonValue) -> StepGenerator:
            with self.audit.call(definition["name"], change.redact(arguments)) as call:
                try:
                    return (yield from limited(run(arguments, call), seconds))
                except TimeUp:
                    raise ToolError("registry_timed_out", seconds=seconds) from None

        return operation

    def _read(self, arguments: Mapping[str, Any], _: Call) -> Steps:
        path = arguments["path"]
        location = self.mounts.for_reading(path)
        with _tool_errors(location):
            hive = (yield from self._read_hive(location.file)) if location.file else self._live(location)
            trail = yield from hive.trail((yield from location.resolve(hive)))
            key = trail[-1]
            if len(trail) <= len(location.names):
                raise ToolError("key_not_found", path=path)
            result: JsonObject = {
                "path": path,
                "resolvedPath": keypath.joined([*location.mount, *(each.name for each in trail[1:])]),
                "lastWriteTime": key.written,
                "dirty": hive.is_dirty,
                "subkeyCount": key.subkey_count,
                "valueCount": key.value_count,
            }
            if "valueName" not in arguments:
                return {**result, **(yield from self._list(hive, key, arguments))}
            value = yield from key.value(arguments["valueName"])
            if value is None:
                raise ToolError("value_not_found", path=path, name=arguments["valueName"])
            return {**result, "values": [self._describe(value)]}

    def _list(self, hive: Hive, key: Key, arguments: Mapping[str, Any]) -> Steps:
        """Return a page of subkeys and values, both from the same number on, within the size limit."""
        from tmkb.sysmcp.registry.hive import select

        include, first = arguments.get("include", "both"), int(arguments.get("offset", 0))
        limit = int(arguments.get("limit", self.settings["page"]))
        items: dict[str, list[Any]] = {}
        if include != "values":
            items["subkeys"] = yield from select(hive, key.subkeys(), limit + 1, first)
        if include != "subkeys":
            items["values"] = yield from select(hive, key.values(), limit + 1, first)
        result: dict[str, Any] = {kind: [] for kind in items}
        room = self.settings["answer_bytes"]
        for number in range(max(map(len, items.values()))):
            if number == limit or room < 0:
                return {**result, "nextOffset": first + number}
            for kind, those in items.items():
                for item in those[number : number + 1]:
                    result[kind].append(item.name if kind == "subkeys" else self._describe(item))
                    room -= len(json.dumps(result[kind][-1]))
        return result

    def _write(self, arguments: Mapping[str, Any], call: Call) -> Steps:
        if self.settings["mode"] != "read-write":
            raise ToolError("registry_read_only")
        location = self.mounts.for_writing(arguments["path"])
        wanted = change.Change(arguments)
        with _tool_errors(location):
            if location.file is None:
                return (yield from self._write_live(wanted, location, call))
            from tmkb.sysmcp.registry import hivex

            hivex.require()
            from tmkb.sysmcp.registry import replacement

            with replacement.Replacement(location.file) as new:
                yield from self._lock(new, location)
                edit = yield from self._draft(new, wanted, location)
                is_due = edit.is_needed and not wanted.is_dry
                backup = (yield from self._commit(new, location, call)) if is_due else None
                return wanted.result(edit, backup)

    def _write_live(self, wanted: change.Change, location: Location, call: Call) -> Steps:
        registry = self._live(location)
        edit = yield from wanted.edit(registry, (yield from location.resolve(registry)))
        if wanted.is_dry or not edit.is_needed:
            return wanted.result(edit, None)
        with _unless(ToolError("audit_unwritable")):
            call.intend()
        from tmkb.sysmcp.registry import live

        backups = self.settings["backups"]
        before = edit.before and change.describe(*edit.before)
        with _unless(ToolError("backup_unwritable")):
            backup = live.save(backups["folder"], wanted.path, before, backups["keep"])
        removed = edit.before[0] if edit.before and not edit.row else None
        registry.change([*edit.names, *edit.new], edit.row, removed)
        return wanted.result(edit, backup)

    def _lock(self, new: Replacement, location: Location) -> Generator[Pause, None, None]:
        deadline = time.monotonic() + self.settings["lock_seconds"]
        while not new.lock():
            if time.monotonic() > deadline:
                raise ToolError("hive_busy", hive=location.mount_name)
            yield Pause(0.02)

    def _draft(
        self, new: Replacement, wanted: change.Change, location: Location
    ) -> Generator[Pause, None, change.Edit]:
        """Make the change in a draft, and read the draft to verify it."""
        from tmkb.sysmcp.registry import hivex, soundness

        limit = self.settings["hive_bytes"]
        data = yield from new.read(limit)
        hive = self._hive(data)
        if hive.is_dirty:
            raise ToolError("hive_dirty", hive=location.mount_name)
        edit = yield from wanted.edit(hive, (yield from location.resolve(hive)))
        if edit.is_needed:
            soundness.check(data, edit.trail, bool(edit.new))
            hivex.write(new.create_draft(), edit.names, edit.new, edit.after)
            yield Pause(0)
            if not (yield from edit.is_in(self._hive((yield from new.read_draft(limit))))):
                raise Corrupt
        return edit

    def _commit(self, new: Replacement, location: Location, call: Call) -> Generator[Pause, None, str]:
        """Replace the hive by the draft; return the name of the backup.

        There is no pause after the replacement, so a completed write is never recorded as cancelled.
        """
        backups = self.settings["backups"]
        new.check()
        yield Pause(0)
        with _unless(ToolError("audit_unwritable")):
            call.intend()
        with _unless(ToolError("backup_unwritable")):
            name = new.back_up(backups["folder"], "-".join(location.mount), backups["keep"])
        yield Pause(0)
        new.commit()
        return name

    def _live(self, location: Location) -> Live:
        try:
            from tmkb.sysmcp.registry import live

            return live.Live(location.mount[0], self.settings["cells"])
        except ModuleNotFoundError as error:
            raise ToolError("no_live_registry") from error

    def _read_hive(self, file: str) -> Generator[Pause, None, Hive]:
        descriptor = plainfile.open_plain(file)
        try:
            status = os.fstat(descriptor)
            identity = plainfile.identity(status)
            if self.cached[0] != identity:
                self.cached = None, bytearray()
                data = yield from plainfile.read(descriptor, self.settings["hive_bytes"])
                if len(data) > self.settings["kept_bytes"] or time.time() - status.st_mtime < _SETTLED:
                    return self._hive(data)
                self.cached = identity, data
            return self._hive(self.cached[1])
        finally:
            os.close(descriptor)

    def _hive(self, data: bytearray) -> Hive:
        from tmkb.sysmcp.registry import hive

        return hive.Hive(data, self.settings["cells"])

    def _describe(self, value: Value) -> JsonObject:
        raw = value.data(self.settings["value_bytes"])
        return change.describe(value.name, value.type, raw, value.size)


@contextmanager
def _unless(error: ToolError) -> Iterator[None]:
    """Raise ``error`` for an OSError in the block."""
    try:
        yield
    except OSError as cause:
        raise error from cause


@contextmanager
def _tool_errors(location: Location) -> Iterator[None]:
    """Turn errors into ToolErrors, which contain neither paths nor messages of the system."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ToolError("hive_reader_missing") from error
    except WriterMissing as error:
        raise ToolError("hive_writer_missing") from error
    except Corrupt as error:
        raise ToolError("hive_corrupt", hive=location.mount_name) from error
    except TooLarge as error:
        raise ToolError("hive_too_large", hive=location.mount_name) from error
    except Changed as error:
        raise ToolError("hive_changed", hive=location.mount_name) from error
    except OSError as error:
        raise ToolError("hive_unavailable", hive=location.mount_name) from error
