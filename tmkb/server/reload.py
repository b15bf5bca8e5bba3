"""``tmkb serve --watch`` and ``--pull``: a child process watches files, pulls Git sources, and sends new entries.

The server reads entries between two messages. It never waits for a build or a pull, and imports nothing for them. On
systems without ``fork``, a thread watches. On macOS, the watcher builds entries in its own process.
"""

from __future__ import annotations

import importlib.util
import json
import os
import struct
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from tmkb.errors import ProtocolError, SpecError
from tmkb.protocol.effects import Sent
from tmkb.schema import paths
from tmkb.server import cache, pull, repository, server
from tmkb.server.pull import Lines
from tmkb.server.runtime import Runtime
from tmkb.server.selection import Selection
from tmkb.server.server import Server
from tmkb.transport.probes import Condition

if TYPE_CHECKING:
    from watchfiles import Change

_HEADER = struct.Struct(">Q")  # of an update: the number of bytes that follow
_CHECK_INTERVAL = 500  # milliseconds between checks whether the server and the folders still exist
_DEBOUNCE = 200  # milliseconds in which changes are collected, at most
_CLOCK_LAG = 0.1  # seconds by which a file's time may be behind the clock
_CONDITION = "patterns"  # of `/readyz`
_REST = 5.0  # seconds before a pull that somebody asks for


class Update(NamedTuple):
    """What a watcher sends: log lines, new entries by view, and whether the last pull of a source failed.

    ``entries`` are packed. There are none if the lines say why nothing new is served.
    """

    lines: Lines
    entries: Mapping[str, bytes] = {}
    failed: bool = False

    def pack(self) -> bytes:
        """Return the update as bytes for `unpack`."""
        sizes = {view: len(packed) for view, packed in self.entries.items()}
        head = json.dumps({"lines": self.lines, "entries": sizes, "failed": self.failed}).encode()
        return b"".join([head, b"\n", *self.entries.values()])

    @classmethod
    def unpack(cls, packed: bytes) -> Update:
        """Return the update of `pack`."""
        end = packed.index(b"\n") + 1
        head, entries = json.loads(packed[:end]), {}
        for view, size in head["entries"].items():
            entries[view] = packed[end : end + size]
            end += size
        return cls(head["lines"], entries, head["failed"])


class Reloader:
    """Applies the updates of a watcher to a runtime. Pass bytes that are readable on `fd` to `feed`."""

    def __init__(  # noqa: PLR0913 # the options of `tmkb serve`
        self,
        runtime: Runtime,
        current: Server,
        started: float,
        caching: bool,
        *,
        watching: bool = True,
        interval: float = 0,
        secret: str | None = None,
    ) -> None:
        """Start the watcher.

        Args:
            runtime: the runtime to update.
            current: what it serves.
            started: Unix time in seconds, before ``current`` was loaded.
            caching: whether to write the cache.
            watching: whether to reload files that change.
            interval: seconds between two pulls of a Git source; 0 to pull only at the start and by webhook.
            secret: the key of signed webhooks; None for no webhook.

        Raises:
            SpecError: if ``watching`` needs ``watchfiles``, which is not installed.
        """
        if watching and not _installed("watchfiles"):
            from tmkb.schema import installation

            raise SpecError([installation.missing("--watch", "watch", "watchfiles")])
        self.runtime = runtime
        self.selection = current.selection
        self.hook = None
        if secret and self.selection.sources:
            from tmkb.transport.hook import Hook

            self.hook = Hook(secret, self.pull)
        self.notes = current.notes
        self.buffer = bytearray()
        self.fd, inlet = os.pipe()
        self.child: int | None = None
        watcher = Watcher(current, caching, inlet, watching, interval)
        if sys.platform != "win32":
            from tmkb.server import child

            self.child = child.start(lambda: watcher.run(started), inlet, watcher.end)
            os.close(inlet)
        else:
            threading.Thread(target=watcher.run, args=(started,), daemon=True).start()

    def feed(self, chunk: bytes) -> list[Sent]:
        """Apply the updates that ``chunk`` completes; return the messages to send. Empty: the watcher has ended."""
        if not chunk:
            self.runtime.log.write("watch_ended")
        self.buffer += chunk
        updates = [*self._updates()]
        return [sent for update in updates for sent in self._apply(update)]

    def pull(self) -> None:
        """Ask the watcher to pull all Git sources soon."""
        for source in self.selection.sources.values():
            repository.ring(source)

    def close(self) -> None:
        """Stop the watcher."""
        if sys.platform != "win32" and self.child is not None:
            from tmkb.server import child

            child.stop(self.child)
            os.close(self.fd)
            self.child = None

    def _updates(self) -> Iterator[Update]:
        while len(self.buffer) >= _HEADER.size:
            (size,) = _HEADER.unpack_from(self.buffer)
            end = _HEADER.size + size
            if len(self.buffer) < end:
                return
            update = bytes(self.buffer[_HEADER.size : end])
            del self.buffer[:end]
            yield Update.unpack(update)

    def _apply(self, update: Update) -> list[Sent]:
        self.runtime.conditions.pop(_CONDITION, None)
        if update.failed:
            self.runtime.conditions[_CONDITION] = Condition(ProtocolError("not_pulled"))
        sent: list[Sent] = []
        notes: Sequence[Any] = []
        if update.entries:
            entries = {view: cache.unpack(packed) for view, packed in update.entries.items()}
            reloaded = Server(entries, self.selection)
            spec, provider, views = reloaded.snapshots()
            kept = {
                view: each.served() for view, each in self.runtime.snapshots.items() if view
            }  # of a reread access file
            sent = self.runtime.replace(spec, provider, kept | views)
            self.runtime.log.write("reloaded")
            notes = [note for note in reloaded.notes if note not in self.notes]
            self.notes = reloaded.notes
        for line, fields in [*update.lines, *notes]:
            self.runtime.log.write(line, **fields)
        return sent


class Watcher:
    """Watches the files of a server, pulls its Git sources, and writes an update to ``inlet`` after each change."""

    def __init__(self, current: Server, caching: bool, inlet: int, watching: bool = True, interval: float = 0) -> None:
        self.selection: Selection = current.selection
        self.caching = caching
        self.inlet = inlet
        self.watching = watching
        self.interval = interval
        self.server = os.getpid()
        self.ending = False
        self.sources = _files(each.sources for each in [current, *current.views.values()])
        self.warnings: Lines = [
            [line, {**fields}] for each in [current, *current.views.values()] for line, fields in each.warnings
        ]
        self.last_update: Update | None = None
        self.watched = self._existing()
        self.unseen_since = float("inf")  # Unix time of the first change that may have been missed
        self.pulled = float("-inf")  # monotonic time of the last pull; the server started with versions of the cache
        self.bells = self._bells()
        self.failures: dict[str, Lines] = {}  # what was last logged about a source that cannot be pulled

    def run(self, started: float) -> None:
        """Run until the server has ended. ``started``: the time before it was loaded."""
        build_first, self.unseen_since = self._existing() != self.watched, started
        while not self._server_ended():
            if not self.watching:
                self._pull_if_due()
                time.sleep(_CHECK_INTERVAL / 1000)
                continue
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
            self._pull_if_due()
            if self._replaced(changes):
                return

    def end(self) -> None:
        """End `run` soon."""
        self.ending = True  # `watchfiles` takes the exception of a signal handler for the end of its changes

    def _server_ended(self) -> bool:
        return self.ending or (os.getpid() != self.server and os.getppid() != self.server)

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
        """Build the entries, again if a file changes meanwhile, and send them if they are new."""
        while True:
            before = self._stamps()
            update = self._build_apart(self.selection)
            if self._stamps() == before:
                break
        if update.entries:
            built = _unpacked(update)
            self.sources = _files(_sources(each) for each in built.values())
            warnings = pull.warnings(built)
            if new := [warning for warning in warnings if warning not in self.warnings]:
                update = Update([["not_reloaded", {}], *new])
            else:
                self.warnings = warnings
                self.failures = {text: lines[:1] for text, lines in self.failures.items()}  # a commit can fit now
        if update != self.last_update:
            self.last_update = update
            self._send(update)

    def _pull_if_due(self) -> None:
        """Pull the sources when the interval is over, and soon after a ring."""
        bells, rest = self._bells(), time.monotonic() - self.pulled
        due = (self.interval and rest >= self.interval) or (bells != self.bells and rest >= _REST)
        if not self.selection.sources or not due:
            return
        asked, self.bells = {text for text in bells if bells[text] != self.bells[text]}, bells
        for text in self.selection.sources:
            self._pull(text, text in asked)
        self.pulled = time.monotonic()

    def _bells(self) -> dict[str, int]:
        return {text: repository.rung(source) for text, source in self.selection.sources.items()}

    def _pull(self, text: str, asked: bool = False) -> None:
        """Pull a source, and send its newest commit, or why it is not served. The same failure is sent once.

        Without being ``asked``, take what another process of this machine has pulled within the interval.
        """
        version = self.selection.versions[text]
        recent = None
        if not asked and repository.age(version.source) < self.interval:
            recent = repository.current(version.source)
        try:
            newest = recent or repository.fetch(version.source)
        except SpecError as error:
            self._fail(text, pull.unreachable(version, error))
            return
        if newest.commit == version.commit:
            if recent is None:  # or the processes keep it recent without pulling
                repository.accept(newest)
            if self.failures.pop(text, None):
                self._send(Update([["pulled", pull.fields(newest)]], {}, bool(self.failures)))
            return
        known = self.failures.get(text, [])
        if len(known) > 1 and known[0] == pull.rejected(version, newest)[0]:
            return
        update = self._build_apart(self.selection.at(newest))
        built = _unpacked(update)
        wrong = [warning for warning in pull.warnings(built) if warning not in self.warnings]
        if not built:
            wrong = update.lines[1:]
        if wrong or not built:
            self._fail(text, [*pull.rejected(version, newest), *wrong])
            return
        self.failures.pop(text, None)
        repository.accept(newest)
        self.selection, self.warnings = self.selection.at(newest), pull.warnings(built)
        self.last_update = None
        self._send(Update([["pulled", pull.fields(newest)]], update.entries, bool(self.failures)))

    def _fail(self, text: str, lines: Lines) -> None:
        known = self.failures.get(text, [])
        still_unreachable = [line for line, _ in lines] == [line for line, _ in known] == ["pull_failed"]
        if lines != known and not still_unreachable:  # reasons contain times and addresses that change
            self.failures[text] = lines
            self._send(Update(lines, {}, bool(self.failures)))

    def _build_apart(self, selection: Selection) -> Update:
        """Return the result of `_build` from a child process where possible; no log lines if the child failed.

        On macOS, `watchfiles` has started threads of frameworks that must not be used in a forked child (fork(2)).
        """
        if sys.platform in ("win32", "darwin"):
            return self._build(selection)
        from tmkb.server import child

        result = child.result(lambda: self._build(selection).pack())
        return Update([["not_reloaded", {}]]) if result is None else Update.unpack(result)

    def _build(self, selection: Selection) -> Update:
        """Return the packed entries, or log lines with the problems."""
        from tmkb.schema import problems

        lines: Lines = [["not_reloaded", {}]]
        try:
            built = server.entries(selection, self.caching, False)
            return Update([], {view: entry.pack() for view, entry in built.items()}, bool(self.failures))
        except SpecError as error:
            lines += [["problem", {"problem": problems.line(each)}] for each in error.problems]
        except Exception as error:  # a bug, which must not stop the server
            lines.append(["failed", {"line": f"{type(error).__name__}: {error}", "ref": ""}])
        return Update(lines, {}, bool(self.failures))

    def _send(self, update: Update) -> None:
        packed = update.pack()
        rest = memoryview(_HEADER.pack(len(packed)) + packed)
        while rest:
            rest = rest[os.write(self.inlet, rest) :]


def _unpacked(update: Update) -> dict[str, cache.Entry]:
    return {view: cache.unpack(packed) for view, packed in update.entries.items()}


def _sources(entry: cache.Entry) -> list[str]:
    sources: Any = entry.head["sources"]
    return list(sources)


def _files(sources: Iterable[Iterable[str]]) -> list[str]:
    """Return the sources that can change: files of commits cannot."""
    return [each for each in dict.fromkeys(chain.from_iterable(sources)) if repository.facts(each) is None]


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # sys.modules has None for it
        return False
