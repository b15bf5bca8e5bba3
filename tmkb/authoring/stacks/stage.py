"""What the stages of all stacks share: the organizations and users, and the targets on which `play` plays cases."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from tmkb.authoring.play import Response, Rival

if TYPE_CHECKING:
    import time_machine

ANONYMOUS = "anonymous"
ORGANIZATIONS = [(1, "Acme"), (2, "Globex")]
USERS = [(1, "alice", "admin", 1), (2, "bob", "member", 1), (3, "mallory", "admin", 2)]
DOCUMENTS = [(1, "Acme payroll", 1, 1), (2, "Globex plan", 3, 2)]

_IDLE_THREADS = "AnyIO worker thread"  # the start of their names: they end soon after a request

_jobs: deque[tuple[Callable[..., Any], str]] = deque()


def enqueue(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Queue a call of ``function`` for a worker, which receives the arguments as JSON, as from a broker."""
    _jobs.append((function, json.dumps([args, kwargs])))


class _Saved(NamedTuple):
    """The state of a stage."""

    data: bytes  # of the database
    clients: dict[str, Any]
    cookies: dict[str, Any]  # of each client
    waited: float
    jobs: list[tuple[Callable[..., Any], str]]


class Stage:
    """A Python application in this process. Subclasses define `send`, `event` and what `save` and `restore` need."""

    def __init__(self, app: ModuleType) -> None:
        self.app = app
        self.database = f"{tempfile.mkdtemp(dir=os.getcwd())}/stage.db"  # the SQLite file
        self.clients: dict[str, Any] = {}  # each actor has cookies of its own
        self.crashes: list[str] = []  # the exceptions behind responses with status 500
        self.waited = 0.0  # seconds by which the clock is advanced
        self._clock: time_machine.travel | None = None

    @property
    def folder(self) -> str:
        """The folder of the database, which `restore` empties."""
        return os.path.dirname(self.database)

    def disconnect(self) -> None:
        """Close all connections to the database."""
        raise NotImplementedError

    def copied(self, cookies: Any) -> Any:
        """Return a copy of the cookies of a client."""
        raise NotImplementedError

    def roots(self) -> list[Any]:
        """Return the objects through which a case can leave something behind, besides the module of the application."""
        return [os.environ]

    def signature(self) -> tuple[int, ...]:
        """Return numbers that differ if a case has left a thread, or a listener for events of a library."""
        return (sum(not each.name.startswith(_IDLE_THREADS) for each in threading.enumerate()),)

    def save(self) -> None:
        """Disconnect, and remember the database, the clients, the clock and the queued jobs for `restore`."""
        self.disconnect()
        with open(self.database, "rb") as file:
            data = file.read()
        cookies = {actor: self.copied(client.cookies) for actor, client in self.clients.items()}
        self._saved = _Saved(data, dict(self.clients), cookies, self.waited, [*_jobs])

    def restore(self) -> None:
        """Return to the state of `save`."""
        self.disconnect()
        for name in os.listdir(self.folder):
            os.remove(os.path.join(self.folder, name))
        with open(self.database, "wb") as file:  # a new one: somebody may still have the old one open
            file.write(self._saved.data)
        self.clients = dict(self._saved.clients)
        for actor, cookies in self._saved.cookies.items():
            self.clients[actor].cookies = self.copied(cookies)
        self.crashes.clear()
        if self._clock is not None:
            self._clock.stop()
            self._clock, self.waited = None, 0.0
        if self._saved.waited:
            self.wait(self._saved.waited)
        _jobs.clear()
        _jobs.extend(self._saved.jobs)

    def send(self, actor: str, method: str, path: str, parts: Mapping[str, Any]) -> Response:
        """Send a request as ``actor``; see `play.Target`."""
        raise NotImplementedError

    def event(self, name: str, values: Mapping[str, Any]) -> Any:
        """Call ``event_NAME`` of the application, or one of the common events."""
        raise NotImplementedError

    def state(self, name: str) -> Any:
        """Return the result of ``state_NAME`` of the application."""
        raise NotImplementedError

    def work(self) -> Response:
        """Run all queued jobs, one after the other, outside of requests."""
        results: list[str] = []
        raised: list[str] = []
        while _jobs:
            function, text = _jobs.popleft()
            args, kwargs = json.loads(text)
            try:
                results.append(repr(self.run_job(function, args, kwargs)))
            except Exception as error:
                results.append(repr(error))
                raised.append(type(error).__name__)
        return Response(text=" ".join(results), raised=raised)

    def run_job(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call ``function`` as a worker does."""
        return function(*args, **kwargs)

    def wait(self, seconds: float) -> None:
        """Advance the clock of this process."""
        if self._clock is None:
            import time_machine  # belongs to the extra `proofs`, and the commands that name it import this module

            self._clock = time_machine.travel(datetime.now(UTC), tick=True)
            self._traveller = self._clock.start()
        self._traveller.shift(seconds)
        self.waited += seconds

    def during(self, after: str | None, rival: Rival) -> AbstractContextManager[dict[str, Any] | None]:
        """Idioms are not played by two requests at the same time."""
        raise NotImplementedError("during")


def described(error: BaseException) -> str:
    """Return an exception in one line, with its innermost place in the application."""
    file = getattr(sys.modules.get("app"), "__file__", "")
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    where = f" at {os.path.basename(str(file))}:{lines[-1]}" if lines else ""
    return f"{type(error).__name__}: {error}{where}"
