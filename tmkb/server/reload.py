"""``tmkb serve --watch``: a child process watches the server's files, builds a new entry, and sends it.

The server reads the entry between two messages. It never waits for a build, and imports nothing for it. On systems
without ``fork``, a thread watches. On macOS, the watcher builds entries in its own process.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tmkb.errors import SpecError
from tmkb.protocol.effects import Sent
from tmkb.schema import paths
from tmkb.server import cache, server
from tmkb.server.runtime import Runtime
from tmkb.server.server import Server

if TYPE_CHECKING:
    from watchfiles import Change

_HEADER = struct.Struct(">?Q")  # of an update: whether it is valid, and the number of bytes that follow
_CHECK_INTERVAL = 500  # milliseconds between checks whether the server and the folders still exist
_DEBOUNCE = 200  # milliseconds in which changes are collected, at most
_CLOCK_LAG = 0.1  # seconds by which a file's time may be behind the clock


class Reloader:
    """Applies the updates of a watcher to a runtime. Pass bytes that are readable on `fd` to `feed`."""

    def __init__(self, runtime: Runtime, current: Server, started: float, caching: bool) -> None:
        """Start the watcher.

        Args:
            runtime: the runtime to update.
            current: what it serves.
            started: Unix time in seconds, before ``current`` was loaded.
            caching: whether to write the cache.

        Raises:
            SpecError: if ``watchfiles`` is not installed.
        """
        if not _installed("watchfiles"):
            from tmkb.schema import installation

            raise SpecError([installation.missing("--watch", "watch", "watchfiles")])
        self.runtime = runtime
        self.notes = current.notes
        self.buffer = bytearray()
        self.fd, inlet = os.pipe()
        self.child: int | None = None
        watcher = Watcher(current, caching, inlet)
        if sys.platform != "win32":
            from tmkb.server import child

            self.child = child.start(lambda: watcher.run(started), inlet)
            os.close(inlet)
        else:
            threading.Thread(target=watcher.run, args=(started,), daemon=True).start()

    def feed(self, chunk: bytes) -> list[Sent]:
        """Apply the updates that ``chunk`` completes; return the messages to send. Empty: the watcher has ended."""
        if not chunk:
            self.runtime.log.write("watch_ended")
        self.buffer += chunk
        updates = [*self._updates()]
        return [sent for valid, update in updates for sent in (self._apply(update) if valid else self._reject(update))]

    def close(self) -> None:
        """Stop the watcher."""
        if sys.platform != "win32" and self.child is not None:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            self.child = None

    def _updates(self) -> Iterator[tuple[bool, bytes]]:
        while len(self.buffer) >= _HEADER.size:
            valid, size = _HEADER.unpack_from(self.buffer)
            end = _HEADER.size + size
            if len(self.buffer) < end:
                return
            update = bytes(self.buffer[_HEADER.size : end])
            del self.buffer[:end]
            yield valid, update

    def _apply(self, packed: bytes) -> list[Sent]:
        reloaded = Server(cache.unpack(packed), {})
        sent = self.runtime.replace(reloaded.spec, reloaded.provider)
        self.runtime.log.write("reloaded")
        for line, fields in reloaded.notes:
            if (line, fields) not in self.notes:
                self.runtime.log.write(line, **fields)
        self.notes = reloaded.notes
        return sent

    def _reject(self, lines: bytes) -> list[Sent]:
        self.runtime.log.write("not_reloaded")
        for line, fields in json.loads(lines):
            self.runtime.log.write(line, **fields)
        return []


class Watcher:
    """Watches the sources of a server, and writes an update to ``inlet`` after each change."""

    def __init__(self, current: Server, caching: bool, inlet: int) -> None:
        self.request = current.request
        self.caching = caching
        self.inlet = inlet
        self.server = os.getpid()
        self.sources = [*current.sources]
        self.warnings: list[Any] = [[line, {**fields}] for line, fields in current.warnings]
        self.last_update: tuple[bool, bytes] | None = None
        self.watched = self._existing()
        self.unseen_since = float("inf")  # Unix time of the first change that may have been missed

    def run(self, started: float) -> None:
        """Run until the server has ended. ``started``: the time before it was loaded."""
        build_first, self.unseen_since = self._existing() != self.watched, started
        while not self._server_ended():
            self.watched = self._existing()
            try:
                self._watch(build_first)
            except FileNotFoundError:  # deleted before it could be watched
                time.sleep(_CHECK_INTERVAL / 1000)
            build_first = True  # the new folders may contain changes

    def _watch(self, build_first: bool) -> None:
        """Build an entry after each change, until a watched folder is replaced; with ``build_first``, also before."""
        import watchfiles

        for changes in watchfiles.watch(
            *self.watched,
            debounce=_DEBOUNCE,
            rust_timeout=_CHECK_INTERVAL,
            yield_on_timeout=True,
            raise_interrupt=False,
        ):
            if self._server_ended():
                return
            if changes or build_first or self._last_change() >= self.unseen_since:
                self._update()
            build_first, self.unseen_since = False, float("inf")
            if self._replaced(changes):
                return

    def _server_ended(self) -> bool:
        return os.getpid() != self.server and os.getppid() != self.server

    def _existing(self) -> dict[str, int]:
        """Return the existing sources with their inode numbers."""
        inodes = {}
        for source in dict.fromkeys([*self.sources, paths.SCHEMAS]):
            try:
                inodes[source] = os.stat(source).st_ino
            except OSError:
                continue
        return inodes

    def _replaced(self, changes: set[tuple[Change, str]]) -> bool:
        """Return whether a watched folder was replaced. A new folder may have the inode number of the old one."""
        if self._existing() != self.watched:
            return True
        return any(change.name == "deleted" and os.path.isdir(path) for change, path in changes)

    def _last_change(self) -> float:
        """Return the Unix time of the last change, in seconds."""
        return max(int(stamp[-2]) for stamp in self._stamps() if len(stamp) > 1) / 1e9 + _CLOCK_LAG

    def _stamps(self) -> list[Any]:
        return cache.stamps(self.sources)

    def _update(self) -> None:
        """Build an entry, again if a file changes meanwhile, and send it if it is new."""
        while True:
            before = self._stamps()
            valid, update = self._build_apart()
            if self._stamps() == before:
                break
        if valid:
            head = json.loads(update.partition(b"\n")[0])["head"]
            self.sources = head["sources"]
            new_warnings = [warning for warning in head["warnings"] if warning not in self.warnings]
            if new_warnings:
                valid, update = False, json.dumps(new_warnings).encode()
            else:
                self.warnings = head["warnings"]
        if (valid, update) != self.last_update:
            self.last_update = valid, update
            self._write(_HEADER.pack(valid, len(update)) + update)

    def _build_apart(self) -> tuple[bool, bytes]:
        """Return the result of `_build` from a child process where possible; no log lines if the child failed.

        On macOS, `watchfiles` has started threads of frameworks that must not be used in a forked child (fork(2)).
        """
        if sys.platform in ("win32", "darwin"):
            return self._build()
        from tmkb.server import child

        result = child.result(lambda: b"%d%b" % self._build())
        return (False, b"[]") if result is None else (result[:1] == b"1", result[1:])

    def _build(self) -> tuple[bool, bytes]:
        """Return True and the packed entry, or False and log lines with the problems."""
        from tmkb.schema import problems

        try:
            return True, server.build(self.request, self.caching).pack()
        except SpecError as error:
            lines: list[Any] = [["problem", {"problem": problems.line(each)}] for each in error.problems]
        except Exception as error:  # a bug, which must not stop the server
            lines = [["failed", {"line": f"{type(error).__name__}: {error}", "ref": ""}]]
        return False, json.dumps(lines).encode()

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.inlet, rest) :]


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # sys.modules has None for it
        return False
