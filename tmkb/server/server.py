"""The composition root: `Server` puts schemas, providers, runtime and transports together.

Used by ``tmkb serve``, ``tmkb replay``, tests and programs that embed a server. Imports nothing that a start from the
cache does not use.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from tmkb import __version__
from tmkb.providers import registry
from tmkb.schema import paths
from tmkb.server import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from typing import Any

    from tmkb.providers.base import Provider
    from tmkb.schema.model import Revision, Spec
    from tmkb.schema.values import JsonObject
    from tmkb.server.embedding import Connection, Embedding
    from tmkb.server.log import Log
    from tmkb.server.runtime import Runtime
    from tmkb.transport.asgi import Application

    Folder = str | os.PathLike[str]

DEFAULT_SERVER = "tmkb"
_PACKAGED = "packaged"  # names the packaged patterns where a folder can stand


class Server:
    """A checked server definition with its providers, ready to talk to clients.

    Thread-safety: `connect`, `query` and all methods of connections may be called from any thread. A lock of the
    server serializes them, so one slow operation delays the others. An application of `asgi` belongs to the thread of
    its event loop and shares nothing with them that changes. Attributes are read-only.
    """

    def __init__(self, entry: cache.Entry, request: JsonObject) -> None:
        """Use `load` instead. ``request``: all that ``entry`` depends on besides its files."""
        head: Any = entry.head
        self.entry = entry
        self.request = request
        self.spec: Spec = head["spec"]
        self.spec["revisions"] = _Revisions(self.spec["server"]["revisions"], entry)
        self.facts: Mapping[str, object] = head["facts"]
        self.warnings: Sequence[tuple[str, Mapping[str, object]]] = head["warnings"]
        self.notes: Sequence[tuple[str, Mapping[str, object]]] = [(line, fields) for line, fields in head["notes"]]
        self.sources: Sequence[str] = head["sources"]
        self._providers: Mapping[str, str] = head["providers"]
        self._embedding: Embedding | None = None

    @classmethod
    def load(  # noqa: PLR0913 # each has a default
        cls,
        name: str = DEFAULT_SERVER,
        *,
        schemas: Sequence[Folder] | None = None,
        patterns: Sequence[Folder] | None = None,
        config: Folder | None = None,
        allow_python: bool = False,
        caching: bool = True,
        forking: bool = False,
    ) -> Server:
        """Read, check and prepare the server ``name``, or take it from the cache.

        Args:
            name: a folder of ``schemas/servers/``.
            schemas: folders searched before the packaged schemas; by default those in ``TMKB_SCHEMAS``.
            patterns: folders of patterns; by default those in ``TMKB_PATTERNS``, else the packaged ones.
                ``packaged`` names the latter.
            config: a configuration file (``tmkb schema formats config``).
            allow_python: whether the YAML may name Python classes as providers, which are imported then.
            caching: whether the cache is read and written. The cache never changes an answer.
            forking: whether a child process does the reading, where the system can fork. The process then needs a
                sixth of the memory, but may not have other threads.

        Raises:
            SpecError: with every problem of the files.
        """
        request = _request(
            name,
            paths.named([os.fspath(folder) for folder in schemas or ()], "TMKB_SCHEMAS"),
            paths.named([os.fspath(folder) for folder in patterns or ()], "TMKB_PATTERNS"),
            None if config is None else os.fspath(config),
        )
        request["allow_python"] = allow_python
        entry = _cached(request) if caching else None
        if entry is None and forking:
            entry = _built_in_child(request, caching)
        return cls(entry or build(request, caching), request)

    def provider(self, name: str) -> Provider:
        """Open the provider ``name``."""
        settings = self.spec["server"].get("providers", {}).get(name, {})
        return registry.open_provider(
            self._providers[name], settings, lambda part: self.entry.section(f"{name}/{part}")
        )

    def announce(self, log: Log, transport: str) -> None:
        """Log the start: facts, warnings, notes, and the ``transport`` that is ready."""
        log.write("starting", **self.facts)
        for line, fields in [*self.warnings, *self.notes]:
            log.write(line, **fields)
        log.write("ready", transport=transport)

    def runtime(self, log: Log, key: bytes | None = None, *, stateless: bool = False) -> Runtime:
        """Return a new runtime, which transports drive.

        Args:
            log: gets the lines of the server.
            key: see `asgi`.
            stateless: leave out sessions, tasks and subscriptions, so that several processes can share the clients.
        """
        from tmkb.server.runtime import Runtime

        spec = self.spec
        if stateless:
            from tmkb.server.stateless import without_sessions

            spec = without_sessions(spec)
        return Runtime(spec, self.provider, log, key)

    def connect(self, *, principal: str = "", on_output: Callable[[], None] | None = None) -> Connection:
        """Return a connection for a new client. Log lines go to the standard logger ``tmkb``.

        Args:
            principal: whose requests these are. Connections of one principal share its memory budget and its tasks.
            on_output: called when another connection's call left messages for this one, from that call's thread;
                fetch them with `Connection.work`, but not from within.
        """
        return self._embedded().connect(principal, on_output)

    def query(
        self,
        context: str,
        *,
        language: str | None = None,
        framework: str | None = None,
        verbosity: str = "agent",
        limit: int | None = None,
    ) -> dict[str, Any]:
        """Return the patterns that matter for ``context``, as the tool for it answers.

        Args:
            context: what is being implemented.
            language: leaves out patterns for other languages.
            framework: leaves out patterns for other frameworks.
            verbosity: ``agent`` for a short answer within a token limit, ``human`` for all details.
            limit: the largest number of patterns, instead of the server's own.

        Raises:
            InvalidArguments: if the tool's schema does not allow the arguments.
            LookupError: if no tool of the server answers queries.
        """
        optional = {"language": language, "framework": framework}
        arguments = {"context": context, "verbosity": verbosity, **{k: v for k, v in optional.items() if v is not None}}
        return self._embedded().query(arguments, limit)

    def asgi(
        self,
        *,
        hosts: Collection[str] | None = None,
        origins: Collection[str] = (),
        token_digests: Collection[str] = (),
        key: bytes | None = None,
    ) -> Application:
        """Return an ASGI application: Streamable HTTP at ``/mcp`` below the path where it is mounted.

        Args:
            hosts: names of this server without a port, which requests must have in ``Host``; by default only those of
                this machine.
            origins: pages that may call it, as ``https://HOST``, besides those of the hosts.
            token_digests: SHA-256, in hexadecimal, of each bearer token that is accepted (``tmkb token``). None: no
                token is needed.
            key: seals what clients keep for the server. Processes that serve the same clients need the same one, of at
                least 32 bytes. None: a random one.
        """
        from tmkb.server.log import StandardLog
        from tmkb.transport import guard
        from tmkb.transport.asgi import Application

        runtime = self.runtime(StandardLog(self.spec["server"]["log"]), key)
        admitted = guard.Guard(guard.LOOPBACK if hosts is None else hosts, origins, token_digests)
        return Application(runtime, admitted)

    def _embedded(self) -> Embedding:
        if self._embedding is None:
            from tmkb.server.embedding import Embedding

            self._embedding = Embedding(self)
        return self._embedding


class _Revisions(Mapping[str, "Revision"]):
    """The revisions that a server offers. Each is parsed when a client first speaks it."""

    def __init__(self, names: Sequence[str], entry: cache.Entry) -> None:
        self.names = names
        self.entry = entry
        self.parsed: dict[str, Revision] = {}

    def __getitem__(self, name: str) -> Revision:
        if name not in self.parsed:
            if name not in self.names:
                raise KeyError(name)
            revision: Any = self.entry.section(f"revisions/{name}")
            self.parsed[name] = revision
        return self.parsed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def _request(server: str, schemas: list[str], patterns: list[str], config: str | None) -> JsonObject:
    """All that an entry depends on besides the files and, in warnings, the current folder."""
    return {
        "server": server,
        "schemas": [paths.absolute(folder) for folder in schemas],
        "patterns": [folder if folder == _PACKAGED else paths.absolute(folder) for folder in patterns],
        "config": None if config is None else paths.absolute(config),
        "tmkb": __version__,
        "python": f"{sys.implementation.cache_tag} {sys.version}",
        "root": paths.ROOT,
    }


def _cached(request: JsonObject) -> cache.Entry | None:
    """The entry in the cache that is valid in every folder (``from`` is null), or else in the current one."""
    parts: Any = request
    sources = [*parts["schemas"], paths.SCHEMAS, *filter(None, [parts["config"]])]
    entry = cache.read({**request, "from": None}, sources)
    entry = entry or cache.read({**request, "from": paths.current() or ""}, sources)
    modules: Any = entry.head["modules"] if entry is not None else {}
    return entry if all(_origin(name) == file for name, file in modules.items()) else None


def _origin(module: str) -> str | None:
    """The file that ``import module`` would run, for code of others: it differs with ``sys.path``."""
    import importlib.util

    spec = importlib.util.find_spec(module)
    return None if spec is None else spec.origin


def _built_in_child(request: JsonObject, caching: bool) -> cache.Entry | None:
    """Build the entry in a child process, whose memory goes with it.

    None where the system cannot fork, or where it failed; this process then finds out why.
    """
    packed = in_child(lambda: build(request, caching).packed()) if hasattr(os, "fork") else None
    return None if packed is None else cache.unpack(packed)


def in_child(work: Callable[[], bytes]) -> bytes | None:
    """Return the result of ``work`` from a child process; None if it failed. The child ends when this process does."""
    outlet, inlet = os.pipe()
    watched, alive = os.pipe()
    if (child := os.fork()) == 0:
        status = 1
        try:
            os.close(alive)
            _exit_with_parent(watched)
            os.close(outlet)  # else nobody would notice that the parent has gone
            with open(inlet, "wb") as pipe:
                pipe.write(work())
            status = 0
        finally:
            os._exit(status)  # without the exit handlers of the parent
    os.close(inlet)
    os.close(watched)
    with open(outlet, "rb") as pipe:
        result = pipe.read()
    ended = os.waitpid(child, 0)[1]
    os.close(alive)
    return result if ended == 0 else None


def _exit_with_parent(watched: int) -> None:
    """Exit as soon as the parent no longer holds the other end of the pipe ``watched``."""
    import threading

    def watch() -> None:
        os.read(watched, 1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def build(request: JsonObject, caching: bool) -> cache.Entry:
    """Build the entry for ``request`` from its files. Raises SpecError."""
    from tmkb.server import build as builder

    return builder.build(request, caching)
