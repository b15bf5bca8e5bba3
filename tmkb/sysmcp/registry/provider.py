"""The registry: keys read from hive files and, where an administrator allows it, values written to them.

What is where: `mounts` says what is permitted, `change` what is to be changed; in `tmkb.sysmcp`, `hive` reads hives,
`hivex` changes them, `replacement` puts the changed one in place, and `live` is the registry of a running Windows.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager

from tmkb.errors import ToolError
from tmkb.providers.base import Provider
from tmkb.providers.operation import Pause
from tmkb.sysmcp import plainfile
from tmkb.sysmcp.audit import Audit
from tmkb.sysmcp.faults import Changed, Corrupt, NoWriter, TooLarge
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
    from tmkb.sysmcp.registry.mounts import Place
    from tmkb.sysmcp.registry.replacement import Replacement

_SETTLED = 2.0  # seconds after which a further change of a file shows in its times, however coarse they are


class Hives(Provider):
    """The keys below the mounts, as far as the settings permit."""

    operations: ClassVar = {"read": (), "write": ()}

    def __init__(self, settings: Mapping[str, Any], part: Callable[[str], JsonObject]) -> None:
        super().__init__(settings, part)
        self.audit = Audit(settings.get("audit"))
        self.mounts = Mounts(settings)
        self.kept: tuple[tuple[int, ...] | None, bytearray] = None, bytearray()  # the hive that was read last

    @classmethod
    def prepare(cls, settings: Mapping[str, Any]) -> Prepared:
        """Return a note with what is served, for the log."""
        mounts = settings["mounts"]
        named = mounts if isinstance(mounts, str) else ", ".join(f"{path} ({file})" for path, file in mounts.items())
        note = ["serves_hives", {"mounts": named, "mode": settings["mode"]}] if named else ["serves_no_hives", {}]
        return {"notes": [note]}

    def operation(self, name: str, definition: Mapping[str, Any]) -> Operation:
        """The operation called ``name``, within its time, recorded as the tool that ``definition`` names."""
        run = {"read": self._read, "write": self._write}[name]

        def operation(**arguments: JsonValue) -> StepGenerator:
            with self.audit.call(definition["name"], change.recorded(arguments)) as call:
                return (yield from self._within(run(arguments, call)))

        return operation

    def _within(self, running: Generator[Pause, None, JsonObject]) -> Generator[Pause, None, JsonObject]:
        """What ``running`` gives, if it does before its time is up."""
        end = time.monotonic() + self.settings["seconds"]
        try:
            while True:
                try:
                    said = next(running)
                except StopIteration as done:
                    result: JsonObject = done.value
                    return result
                if time.monotonic() > end:
                    raise ToolError("registry_timed_out", seconds=self.settings["seconds"])
                yield said
        finally:
            running.close()

    def _read(self, asked: Mapping[str, Any], call: Call) -> Generator[Pause, None, JsonObject]:
        place = self.mounts.readable(asked["path"])
        with _told(place):
            hive = (yield from self._opened(place.file)) if place.file else self._live(place)
            trail = yield from hive.trail((yield from place.resolved(hive)))
            key = trail[-1]
            if len(trail) <= len(place.names):
                raise ToolError("key_not_found", path=asked["path"])
            about: JsonObject = {
                "path": asked["path"],
                "resolvedPath": keypath.joined([*place.mount, *(each.name for each in trail[1:])]),
                "lastWriteTime": key.written,
                "dirty": hive.is_dirty,
                "subkeyCount": key.subkey_count,
                "valueCount": key.value_count,
            }
            if "valueName" in asked:
                found = yield from key.value(asked["valueName"])
                if found is None:
                    raise ToolError("value_not_found", path=asked["path"], name=asked["valueName"])
                return {**about, "values": [self._shown(found)]}
            return {**about, **(yield from self._listed(hive, key, asked))}

    def _listed(self, hive: Hive, key: Key, asked: Mapping[str, Any]) -> Generator[Pause, None, JsonObject]:
        """One page of subkeys and values, both from the same number on. It ends before it grows too large."""
        from tmkb.sysmcp.registry.hive import page

        include, first = asked.get("include", "both"), int(asked.get("offset", 0))
        most = int(asked.get("limit", self.settings["page"]))
        listed: dict[str, list[Any]] = {}
        if include != "values":
            listed["subkeys"] = yield from page(hive, key.subkeys(), first, most + 1)
        if include != "subkeys":
            listed["values"] = yield from page(hive, key.values(), first, most + 1)
        result: dict[str, Any] = {kind: [] for kind in listed}
        room = self.settings["answer_bytes"]
        for number in range(max(map(len, listed.values()))):
            if number == most or room < 0:
                return {**result, "nextOffset": first + number}
            for kind, things in listed.items():
                for thing in things[number : number + 1]:
                    result[kind].append(thing.name if kind == "subkeys" else self._shown(thing))
                    room -= len(json.dumps(result[kind][-1]))
        return result

    def _write(self, asked: Mapping[str, Any], call: Call) -> Generator[Pause, None, JsonObject]:
        if self.settings["mode"] != "read-write":
            raise ToolError("registry_read_only")
        place = self.mounts.changeable(asked["path"])
        wanted = change.Change(asked)
        with _told(place):
            if place.file is None:
                return (yield from self._write_live(wanted, place, call))
            from tmkb.sysmcp.registry import hivex

            hivex.require()
            from tmkb.sysmcp.registry import replacement  # of POSIX, as is that library

            with replacement.Replacement(place.file) as new:
                yield from self._lock(new, place)
                edit = yield from self._drafted(new, wanted, place)
                goes_on = edit.is_needed and not wanted.is_dry
                backup = (yield from self._commit(new, place, call)) if goes_on else None
                return wanted.answer(edit, backup)

    def _write_live(self, wanted: change.Change, place: Place, call: Call) -> Generator[Pause, None, JsonObject]:
        registry = self._live(place)
        edit = yield from wanted.edit(registry, (yield from place.resolved(registry)))
        if wanted.is_dry or not edit.is_needed:
            return wanted.answer(edit, None)
        with _refusing(ToolError("audit_unwritable")):
            call.intend()
        from tmkb.sysmcp.registry import live

        with _refusing(ToolError("backup_unwritable")):
            before = edit.before and change.shown(*edit.before)
            backup = live.save(
                self.settings["backups"]["folder"], wanted.path, before, self.settings["backups"]["keep"]
            )
        removed = edit.before[0] if edit.before and not edit.row else None
        registry.change([*edit.names, *edit.new], edit.row, removed)
        return wanted.answer(edit, backup)

    def _drafted(self, new: Replacement, wanted: change.Change, place: Place) -> Generator[Pause, None, change.Edit]:
        """Make the change in a copy, and read that again."""
        from tmkb.sysmcp.registry import hivex, soundness

        data = yield from new.read(self.settings["hive_bytes"])
        hive = self._hive(data)
        if hive.is_dirty:
            raise ToolError("hive_dirty", hive=place.name)
        edit = yield from wanted.edit(hive, (yield from place.resolved(hive)))
        if edit.is_needed:
            soundness.check(data, edit.trail, bool(edit.new))
            hivex.write(new.draft(), edit.names, edit.new, edit.after)
            yield Pause(0)
            written = self._hive((yield from new.drafted(self.settings["hive_bytes"])))
            if not (yield from edit.is_in(written)):
                raise Corrupt
        return edit

    def _lock(self, new: Replacement, place: Place) -> Generator[Pause, None, None]:
        end = time.monotonic() + self.settings["lock_seconds"]
        while not new.lock():
            if time.monotonic() > end:
                raise ToolError("hive_busy", hive=place.name)
            yield Pause(0.02)

    def _commit(self, new: Replacement, place: Place, call: Call) -> Generator[Pause, None, str]:
        """Put the copy in place; the name of the backup. Nothing gives way after that, so it is recorded as done."""
        backups = self.settings["backups"]
        new.check()
        yield Pause(0)
        with _refusing(ToolError("audit_unwritable")):
            call.intend()
        with _refusing(ToolError("backup_unwritable")):
            name = new.back_up(backups["folder"], "-".join(place.mount), backups["keep"])
        yield Pause(0)
        new.commit()
        return name

    def _live(self, place: Place) -> Live:
        try:
            from tmkb.sysmcp.registry import live

            return live.Live(place.mount[0], self.settings["cells"])
        except ModuleNotFoundError as error:
            raise ToolError("no_live_registry") from error

    def _opened(self, file: str) -> Generator[Pause, None, Hive]:
        descriptor = plainfile.open_plain(file)
        try:
            status = os.fstat(descriptor)
            identity = plainfile.identity(status)
            if self.kept[0] != identity:
                self.kept = None, bytearray()
                data = yield from plainfile.read(descriptor, self.settings["hive_bytes"])
                if len(data) > self.settings["kept_bytes"] or time.time() - status.st_mtime < _SETTLED:
                    return self._hive(data)
                self.kept = identity, data
            return self._hive(self.kept[1])
        finally:
            os.close(descriptor)

    def _hive(self, data: bytearray) -> Hive:
        from tmkb.sysmcp.registry import hive

        return hive.Hive(data, self.settings["cells"])

    def _shown(self, found: Value) -> JsonObject:
        raw = found.data(self.settings["value_bytes"])
        return change.shown(found.name, found.type, raw, found.size)


@contextmanager
def _refusing(error: ToolError) -> Iterator[None]:
    """What has to come before a change cannot be done: the client is told ``error``."""
    try:
        yield
    except OSError as cause:
        raise error from cause


@contextmanager
def _told(place: Place) -> Iterator[None]:
    """What goes wrong with the hive at ``place``, as the client is told: neither paths nor what the system says."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ToolError("hive_reader_missing") from error
    except NoWriter as error:
        raise ToolError("hive_writer_missing") from error
    except Corrupt as error:
        raise ToolError("hive_corrupt", hive=place.name) from error
    except TooLarge as error:
        raise ToolError("hive_too_large", hive=place.name) from error
    except Changed as error:
        raise ToolError("hive_changed", hive=place.name) from error
    except OSError as error:
        raise ToolError("hive_unavailable", hive=place.name) from error
