"""What a server needs to start: its spec and what its providers prepared, from the cache or made now.

Imports nothing that a warm start does not use.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from tmkb import __version__
from tmkb.schema import paths
from tmkb.server import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from tmkb.providers.registry import Provider
    from tmkb.schema.model import Revision, Spec
    from tmkb.schema.values import JsonObject
    from tmkb.server.log import Log

DEFAULT_SERVER = "tmkb"
_PACKAGED = "packaged"  # the word for the packaged folder of patterns, which is no path


class _Revisions(Mapping[str, "Revision"]):
    """The revisions that a server offers, each of which is read when a client speaks it."""

    def __init__(self, names: Sequence[str], entry: cache.Entry) -> None:
        self.names = names
        self.entry = entry
        self.found: dict[str, Revision] = {}

    def __getitem__(self, name: str) -> Revision:
        if name not in self.found:
            if name not in self.names:
                raise KeyError(name)
            read: Any = self.entry.section(f"revisions/{name}")
            self.found[name] = read
        return self.found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


class Service:
    """A server that can be started: its `spec`, and its providers, opened when they are asked for."""

    def __init__(self, entry: cache.Entry, request: JsonObject) -> None:
        """``request``: all that the entry depends on besides its files."""
        head: Any = entry.head
        self.entry = entry
        self.request = request
        self.spec: Spec = head["spec"]
        self.spec["revisions"] = _Revisions(self.spec["server"]["revisions"], entry)
        self.facts: Mapping[str, object] = head["facts"]
        self.warnings: Sequence[tuple[str, Mapping[str, object]]] = head["warnings"]
        self.notes: Sequence[tuple[str, Mapping[str, object]]] = [(line, fields) for line, fields in head["notes"]]
        self.sources: Sequence[str] = head["sources"]

    def provider(self, name: str) -> Provider:
        """The opened provider ``name``."""
        from tmkb.providers import registry

        settings = self.spec["server"].get("providers", {}).get(name, {})
        return registry.open_provider(name, settings, lambda part: self.entry.section(f"{name}/{part}"))

    def announce(self, log: Log, transport: str) -> None:
        """The first lines of the log: what is served, and what is not as it was meant."""
        log.write("starting", **self.facts)
        for line, fields in [*self.warnings, *self.notes]:
            log.write(line, **fields)
        log.write("ready", transport=transport)


def service(
    server: str = DEFAULT_SERVER,
    schemas: Sequence[str] | None = None,
    patterns: Sequence[str] | None = None,
    *,
    config: str | None = None,
    caching: bool = True,
    lasting: bool = False,
) -> Service:
    """The service of ``server`` with these folders, or those of the environment, and a configuration. Raises SpecError.

    ``lasting``: this process will be there for long, and is to hold no more than serving needs.
    """
    folders = paths.named(schemas, "TMKB_SCHEMAS"), paths.named(patterns, "TMKB_PATTERNS")
    request = _request(server, *folders, config)
    entry = _kept(request) if caching else None
    if entry is None and lasting:
        entry = _made_apart(request, caching)
    return Service(entry or made(request, caching), request)


def _request(server: str, schemas: list[str], patterns: list[str], config: str | None) -> JsonObject:
    """All that a service depends on besides the files and, in the problems it tells, the current folder."""
    return {
        "server": server,
        "schemas": [paths.absolute(folder) for folder in schemas],
        "patterns": [folder if folder == _PACKAGED else paths.absolute(folder) for folder in patterns],
        "config": None if config is None else paths.absolute(config),
        "tmkb": __version__,
        "python": f"{sys.implementation.cache_tag} {sys.version}",
        "root": paths.ROOT,
    }


def _kept(request: JsonObject) -> cache.Entry | None:
    """The entry in the cache: one that names no files (``from`` is null), else one that names them from here."""
    asked: Any = request
    sources = [*asked["schemas"], paths.SCHEMAS, *filter(None, [asked["config"]])]
    kept = cache.read({**request, "from": None}, sources)
    return kept or cache.read({**request, "from": paths.current() or ""}, sources)


def _made_apart(request: JsonObject, caching: bool) -> cache.Entry | None:
    """The same, made in a child process, with which goes what reading and checking has loaded: six times what serving
    needs. None where that is not possible, or did not succeed; then this process finds out why."""
    packed = apart(lambda: made(request, caching).packed()) if hasattr(os, "fork") else None
    return None if packed is None else cache.unpack(packed)


def apart(work: Callable[[], bytes]) -> bytes | None:
    """What ``work`` gives in a child process, with which goes whatever it has loaded; None where it did not succeed."""
    outlet, inlet = os.pipe()
    watched, alive = os.pipe()
    if (child := os.fork()) == 0:
        status = 1
        try:
            os.close(alive)
            _end_with(watched)
            os.close(outlet)  # so that nobody is left who could read, when the other process has gone
            with open(inlet, "wb") as pipe:
                pipe.write(work())
            status = 0
        finally:
            os._exit(status)  # without the ends of the process that it is a copy of
    os.close(inlet)
    os.close(watched)
    with open(outlet, "rb") as pipe:
        given = pipe.read()
    ended = os.waitpid(child, 0)[1]
    os.close(alive)
    return given if ended == 0 else None


def _end_with(watched: int) -> None:
    """End this process as soon as nobody holds the other end of the pipe ``watched``: the parent, however it ends."""
    import threading

    def watch() -> None:
        os.read(watched, 1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def made(request: JsonObject, caching: bool) -> cache.Entry:
    """The entry for ``request``, made from its sources. Raises SpecError."""
    from tmkb.server import preparation

    return preparation.prepare(request, caching)
