"""``tmkb serve --watch``: a child process watches the server's files, checks changes, and sends the result.

The server only reads the result, between two messages: it never waits for a check, and imports nothing for it.
Where the system cannot fork, a thread does the same. On macOS the watcher checks in its own process (`_can_fork`).
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
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tmkb.errors import Problem, SpecError
from tmkb.schema import paths
from tmkb.server import cache, server
from tmkb.server.runtime import Runtime, Sent
from tmkb.server.server import Server

if TYPE_CHECKING:
    from watchfiles import Change

_HEAD = struct.Struct(">?Q")  # whether it is good, and how many bytes follow
_LOOK = 500  # milliseconds after which to see whether the server, and the folders, are still there
_PAUSE = 200  # the longest, in milliseconds, that changes are gathered for
_RACE = 0.1  # seconds by which a file's time may lag behind the clock


class News:
    """The updates that a watcher sends: bytes readable on `fd` are for `feed`."""

    def __init__(self, runtime: Runtime, current: Server, began: float, caching: bool) -> None:
        """``began``: the time before ``current`` was loaded. Raises SpecError if the extra is not installed."""
        if not _installed("watchfiles"):
            raise SpecError([Problem.of_argument("extra_missing", "--watch", extra="watch", module="watchfiles")])
        self.runtime = runtime
        self.notes = current.notes
        self.waiting = bytearray()
        self.fd, inlet = os.pipe()
        self.child: int | None = None
        watcher = Watcher(current, caching, inlet)
        if hasattr(os, "fork"):
            self.child = _forked(lambda: watcher.run(began), inlet)
            os.close(inlet)
        else:
            threading.Thread(target=watcher.run, args=(began,), daemon=True).start()

    def feed(self, chunk: bytes) -> list[Sent]:
        """Apply the updates that ``chunk`` completes; return what to send. An empty chunk: the watcher has ended."""
        if not chunk:
            self.runtime.log.write("watch_ended")
        self.waiting += chunk
        return [
            sent for good, update in self._frames() for sent in (self._renew(update) if good else self._refuse(update))
        ]

    def close(self) -> None:
        """Stop the watcher."""
        if self.child is not None:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            self.child = None

    def _frames(self) -> Iterator[tuple[bool, bytes]]:
        while len(self.waiting) >= _HEAD.size:
            good, size = _HEAD.unpack_from(self.waiting)
            end = _HEAD.size + size
            if len(self.waiting) < end:
                return
            update = bytes(self.waiting[_HEAD.size : end])
            del self.waiting[:end]
            yield good, update

    def _renew(self, packed: bytes) -> list[Sent]:
        reloaded = Server(cache.unpack(packed), {})
        sent = self.runtime.replace(reloaded.spec, reloaded.provider)
        self.runtime.log.write("renewed")
        for line, fields in reloaded.notes:
            if (line, fields) not in self.notes:
                self.runtime.log.write(line, **fields)
        self.notes = reloaded.notes
        return sent

    def _refuse(self, lines: bytes) -> list[Sent]:
        self.runtime.log.write("not_renewed")
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
        self.known: list[Any] = [[line, {**fields}] for line, fields in current.warnings]
        self.sent: tuple[bool, bytes] | None = None
        self.present = self._present()
        self.began = float("inf")  # from when on changes have not been seen

    def run(self, began: float) -> None:
        """Run until the server has ended. ``began``: the time before it was loaded."""
        due, self.began = self._present() != self.present, began
        while not self._gone():
            self.present = self._present()
            try:
                self._look(due)
            except FileNotFoundError:  # gone before it could be watched
                time.sleep(_LOOK / 1000)
            due = True  # other folders than before: what they hold has not been seen

    def _look(self, due: bool) -> None:
        """Check what changes, for as long as the same folders are there; ``due``: and once before that."""
        import watchfiles

        for changes in watchfiles.watch(
            *self.present, debounce=_PAUSE, rust_timeout=_LOOK, yield_on_timeout=True, raise_interrupt=False
        ):
            if self._gone():
                return
            if changes or due or self._newest() >= self.began:
                self._check()
            due, self.began = False, float("inf")
            if self._replaced(changes):
                return

    def _gone(self) -> bool:
        return os.getpid() != self.server and os.getppid() != self.server

    def _present(self) -> dict[str, int]:
        """Existing sources, each with its inode number."""
        inodes = {}
        for source in dict.fromkeys([*self.sources, paths.SCHEMAS]):
            try:
                inodes[source] = os.stat(source).st_ino
            except OSError:
                continue
        return inodes

    def _replaced(self, changes: set[tuple[Change, str]]) -> bool:
        """Whether other folders are there than are watched. One made again may have the number of the old one."""
        if self._present() != self.present:
            return True
        return any(change.name == "deleted" and os.path.isdir(path) for change, path in changes)

    def _newest(self) -> float:
        """The time of the last change, in seconds."""
        return max(int(stamp[-2]) for stamp in self._stamps() if len(stamp) > 1) / 1e9 + _RACE

    def _stamps(self) -> list[Any]:
        return cache.stamps(self.sources)

    def _check(self) -> None:
        """Build the server from files that do not change meanwhile; send the result if it is new."""
        while True:
            before = self._stamps()
            good, update = _apart(self._made) if _can_fork() else self._made()
            if self._stamps() == before:
                break
        if good:
            head = json.loads(update.partition(b"\n")[0])["head"]
            self.sources = head["sources"]
            more = [warning for warning in head["warnings"] if warning not in self.known]
            if more:
                good, update = False, json.dumps(more).encode()
            else:
                self.known = head["warnings"]
        if (good, update) != self.sent:
            self.sent = good, update
            self._write(_HEAD.pack(good, len(update)) + update)

    def _made(self) -> tuple[bool, bytes]:
        """The packed entry, or log lines with the problems."""
        from tmkb.schema import problems

        try:
            return True, server.build(self.request, self.caching).packed()
        except SpecError as error:
            lines: list[Any] = [["problem", {"problem": problems.line(each)}] for each in error.problems]
        except Exception as error:  # ours, and no reason to stop serving
            lines = [["failed", {"line": f"{type(error).__name__}: {error}", "ref": ""}]]
        return False, json.dumps(lines).encode()

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.inlet, rest) :]


def _forked(work: Callable[[], None], inlet: int) -> int:
    """The id of a child process that does ``work``, and holds nothing of this one but ``inlet``."""
    if child := os.fork():
        return child
    try:
        for number in (signal.SIGINT, signal.SIGTERM):  # which terminals and service managers send to both
            signal.signal(number, signal.SIG_IGN)
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(nothing, fd)
        os.closerange(3, inlet)
        os.closerange(inlet + 1, inlet + 256)
        work()
    finally:
        os._exit(0)


def _can_fork() -> bool:
    """Whether the watcher may fork, although `watchfiles` has started threads in it.

    macOS forbids its frameworks, which `watchfiles` uses there, in a child that was forked beside threads (fork(2)).
    """
    return hasattr(os, "fork") and sys.platform != "darwin"


def _apart(work: Callable[[], tuple[bool, bytes]]) -> tuple[bool, bytes]:
    """What ``work`` gives in a process of its own; no lines of the log where that has ended before."""
    packed = server.in_child(lambda: b"%d%b" % work())
    return (False, b"[]") if packed is None else (packed[:1] == b"1", packed[1:])


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # it has been made impossible to import
        return False
