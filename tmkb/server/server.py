"""The composition root: `Server` combines schemas, providers, runtime and transports.

Used by ``tmkb serve``, ``tmkb replay``, tests and programs that embed a server. It imports only what a start from the
cache needs.
"""

from __future__ import annotations

import os
import sys

from tmkb import __version__
from tmkb.providers import registry
from tmkb.schema import paths
from tmkb.server import cache, selection
from tmkb.server.selection import Selection
from tmkb.stdlib import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from typing import Any

    from tmkb.insight.observer import Observer
    from tmkb.providers.base import Provider
    from tmkb.schema.model import Revision, Spec
    from tmkb.schema.values import JsonObject
    from tmkb.server.embedding import Connection, Embedding
    from tmkb.server.log import Log
    from tmkb.server.runtime import Runtime
    from tmkb.transport.asgi import Application

    Folder = str | os.PathLike[str]
    Opener = Callable[[str], Provider]

DEFAULT_SERVER = "tmkb"
_EVERY_REVISION = "everything"  # the packaged server that supports all revisions and has no patterns
_PACKAGED = "packaged"  # instead of a folder: the packaged patterns


class Server:
    """A checked server definition with its providers, ready for clients.

    Thread-safety: `connect`, `query` and all methods of connections may be called from any thread. A lock of the
    server serializes them, so one slow operation delays the others. An application of `asgi` belongs to the thread of
    its event loop, and shares no mutable state with them. Attributes are read-only.
    """

    def __init__(
        self, entries: Mapping[str, cache.Entry], chosen: Selection, pulled: Sequence[Sequence[Any]] = ()
    ) -> None:
        """Use `load` instead.

        Args:
            entries: by view.
            chosen: what they were built from.
            pulled: log lines about the Git sources.
        """
        head: Any = entries[""].head
        self.entry = entries[""]
        self.selection = chosen
        self.pulled = pulled
        self.spec: Spec = head["spec"]
        self.spec["revisions"] = _Revisions(self.spec["server"]["revisions"], self.entry)
        self.facts: Mapping[str, object] = head["facts"]
        self.warnings: Sequence[tuple[str, Mapping[str, object]]] = head["warnings"]
        self.notes: Sequence[tuple[str, Mapping[str, object]]] = [(line, fields) for line, fields in head["notes"]]
        self.sources: Sequence[str] = head["sources"]
        self.views = {name: Server({"": each}, chosen) for name, each in entries.items() if name}
        if self.views and "cache" in self.spec["server"]:  # what one caller gets is not what another one gets
            for each in (self, *self.views.values()):
                each.spec["server"]["cache"] = {**each.spec["server"]["cache"], "cacheScope": "private"}
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
        views: Mapping[str, Sequence[Folder]] | None = None,
        caching: bool = True,
        forking: bool = False,
        fresh: float = 60.0,
        verified: bool = False,
    ) -> Server:
        """Load the server ``name`` from the cache, or read, check and prepare it.

        Args:
            name: a folder of ``schemas/servers/``.
            schemas: folders searched before the packaged schemas; by default those in ``TMKB_SCHEMAS``.
            patterns: folders of patterns, Git sources (`tmkb.server.repository.parse`), or ``packaged``; by default
                those in ``TMKB_PATTERNS``, else the packaged ones.
            config: a configuration file (``tmkb schema formats config``).
            allow_python: whether to import Python classes that the YAML names as providers.
            views: other patterns, by the name of the view; see `Runtime`.
            caching: whether to read and write the cache, which never changes a response.
            forking: whether to read the files in a child process, if the system can fork. The process then needs a
                sixth of the memory, but must not have other threads.
            fresh: seconds after a pull in which a Git source is not pulled again. The first pull is never omitted.
            verified: whether only commits are pulled that Git can verify.

        Raises:
            SpecError: with every problem of the files.
        """
        below = paths.named([os.fspath(folder) for folder in schemas or ()], "TMKB_SCHEMAS")
        chosen = {"": paths.named([os.fspath(folder) for folder in patterns or ()], "TMKB_PATTERNS")}
        chosen |= {view: [os.fspath(folder) for folder in folders] for view, folders in (views or {}).items()}
        file = None if config is None else os.fspath(config)
        requests = {
            view: {**_request(name, below, names, file), "allow_python": allow_python} for view, names in chosen.items()
        }
        selected = selection.of(requests, verified)
        if not selected.sources:
            return cls(entries(selected, caching, forking), selected)
        from tmkb.server import pull

        served, built, lines = pull.start(selected, lambda each: entries(each, caching, forking), fresh)
        return cls(built, served, [*pull.served(served), *lines])

    def provider(self, name: str) -> Provider:
        """Open the provider ``name``."""
        settings = self.spec["server"].get("providers", {}).get(name, {})
        return registry.open_provider(
            self._providers[name], settings, lambda part: self.entry.section(f"{name}/{part}")
        )

    def is_cached(self) -> bool:
        """Return whether the next start finds this server in the cache."""
        return _read_cache(self.selection.pinned()[""]) is not None

    def announce(self, log: Log, transport: str) -> None:
        """Log the start: facts, warnings and notes, and that ``transport`` is ready."""
        log.write("starting", **self.facts)
        views = [warning for view in self.views.values() for warning in view.warnings if warning not in self.warnings]
        for line, fields in [*self.warnings, *views, *self.notes, *self.pulled]:
            log.write(line, **fields)
        log.write("ready", transport=transport)

    def runtime(self, log: Log, keys: Sequence[bytes] = (), observer: Observer | None = None) -> Runtime:
        """Return a new runtime for a transport.

        Args:
            log: receives the log lines.
            keys: see `asgi`.
            observer: receives each finished request.
        """
        from tmkb.server.runtime import Runtime

        spec, provider, views = self.snapshots()
        return Runtime(spec, provider, log, keys, observer, views)

    def snapshots(self) -> tuple[Spec, Opener, dict[str, tuple[Spec, Opener]]]:
        """Return what a runtime serves: the spec, the function that opens a provider, and both of each view."""
        return self.spec, self.provider, {name: (view.spec, view.provider) for name, view in self.views.items()}

    def connect(self, *, principal: str = "", on_output: Callable[[], None] | None = None) -> Connection:
        """Return a connection for a new client. Log lines go to the standard logger ``tmkb``.

        Args:
            principal: the owner of the requests. Connections of one principal share a memory budget and tasks.
            on_output: called from the thread of another connection's call that has produced messages for this one.
                Fetch them with `Connection.work` after ``on_output`` has returned.
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
        """Return the patterns that are relevant to ``context``, in the format of the query tool.

        Args:
            context: what the caller implements.
            language: the programming language, as the tool's schema allows it.
            framework: the framework or platform, likewise.
            verbosity: ``agent`` for a short answer within a token limit, ``human`` for all details.
            limit: the maximum number of patterns; by default the server's.

        Raises:
            InvalidArguments: if the tool's schema does not allow the arguments.
            LookupError: if the server has no query tool.
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
        key: bytes | Sequence[bytes] = (),
    ) -> Application:
        """Return an ASGI application: Streamable HTTP at ``/mcp`` below the path where it is mounted.

        Args:
            hosts: accepted host names in ``Host``, without a port; by default only those of this machine.
            origins: accepted origins such as ``https://HOST``, besides those of the hosts.
            token_digests: SHA-256, in hexadecimal, of each accepted bearer token (``tmkb token``). Empty: no token is
                required.
            key: at least 32 bytes that sign request states; empty for a random key. Processes that share clients need
                the same key. Of several keys, the first signs, and all verify.
        """
        from tmkb.server.log import StandardLog
        from tmkb.transport import guard
        from tmkb.transport.asgi import Application
        from tmkb.transport.http import Endpoint

        keys = ([key] if key else []) if isinstance(key, bytes) else key
        runtime = self.runtime(StandardLog(self.spec["server"]["log"]), keys)
        admitted = guard.Guard(guard.LOOPBACK if hosts is None else hosts, origins, token_digests)
        return Application(Endpoint(runtime, admitted))

    def _embedded(self) -> Embedding:
        if self._embedding is None:
            from tmkb.server.embedding import Embedding

            self._embedding = Embedding(self)
        return self._embedding


def protocol(schemas: Sequence[Folder] | None = None) -> Spec:
    """Return the rules of all revisions, for programs that speak with servers of others.

    It loads no pattern, which would take seconds. ``schemas``: as for `Server.load`. Raises SpecError.
    """
    return Server.load(_EVERY_REVISION, schemas=schemas).spec


class _Revisions(Mapping[str, "Revision"]):
    """The served revisions by name. Each is parsed on first use."""

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


def entries(selected: Selection, caching: bool, forking: bool) -> dict[str, cache.Entry]:
    """Return the entry of each view, from the cache or built. Arguments as of `Server.load`. Raises SpecError."""
    found = {}
    for view, request in selected.pinned().items():
        entry = _read_cache(request) if caching else None
        if entry is None and forking:
            entry = _build_in_child(request, caching)
        found[view] = entry or build(request, caching)
    return found


def _request(server: str, schemas: list[str], patterns: list[str], config: str | None) -> JsonObject:
    """Return what an entry depends on besides its sources and, for warnings, the current folder."""
    return {
        "server": server,
        "schemas": [paths.absolute(folder) for folder in schemas],
        "patterns": [
            name if name == _PACKAGED or selection.is_source(name) else paths.absolute(name) for name in patterns
        ],
        "config": None if config is None else paths.absolute(config),
        "tmkb": __version__,
        "python": f"{sys.implementation.cache_tag} {sys.version}",
        "root": paths.ROOT,
    }


def _read_cache(request: JsonObject) -> cache.Entry | None:
    """Return the cache entry that is valid in every folder (``from`` is null), else the one for the current folder."""
    parts: Any = request
    sources = [*parts["schemas"], paths.SCHEMAS, *filter(None, [parts["config"]])]
    entry = cache.read({**request, "from": None}, sources)
    entry = entry or cache.read({**request, "from": paths.current() or ""}, sources)
    modules: Any = entry.head["modules"] if entry is not None else {}
    return entry if all(_origin(name) == file for name, file in modules.items()) else None


def _origin(module: str) -> str | None:
    """Return the file that ``import module`` would run, which depends on ``sys.path``."""
    import importlib.util

    spec = importlib.util.find_spec(module)
    return None if spec is None else spec.origin


def _build_in_child(request: JsonObject, caching: bool) -> cache.Entry | None:
    """Build the entry in a child process, which frees its memory afterwards.

    Return None if the system cannot fork or the child failed. A build in this process then reports the problems.
    """
    if sys.platform == "win32":
        return None
    from tmkb.server import child

    packed = child.result(lambda: build(request, caching).pack())
    return None if packed is None else cache.unpack(packed)


def build(request: JsonObject, caching: bool) -> cache.Entry:
    """Build the entry for ``request`` from its files. Raises SpecError."""
    from tmkb.server import build as builder

    return builder.build(request, caching)
