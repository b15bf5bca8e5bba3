"""Where sessions and tasks are: the interface of a directory, and the directory of the workers of one machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

_NUMBER = re.compile(r"([0-9]{1,9})-")
_NEWS = ".news"

Kind = Literal["session", "task"]
Fields = dict[bytes, bytes]
Changes = Mapping[str, bytes | None]  # field → its value; None: removed
OnNews = Callable[[bytes], None]


class Held(NamedTuple):
    """What one replica has in memory: a session or a task."""

    kind: Kind
    id: str


class Place(NamedTuple):
    """The replica that has something.

    ``address``: HOST:PORT or the path of a socket; "" if the replica has ended. ``leaving``: whether it is about to
    end, and then releases what it has.
    """

    owner: str
    address: str
    leaving: bool = False


class Write(NamedTuple):
    """Fields of a record to write. ``whole``: they replace the record."""

    held: Held
    changes: Changes
    whole: bool


class Unavailable(Exception):
    """The directory cannot be reached at the moment."""


class Directory(Protocol):
    """Knows which replica has what. Each method that waits raises `Unavailable` after about a second."""

    id: str  # of this replica
    keeps_records: bool  # whether a record outlives its replica

    def name(self, id_: str) -> str:
        """Return the id to use for a new session or task with the random ``id_``."""

    async def start(self, on_news: OnNews, on_loss: Callable[[], None], in_use: Callable[[], Iterable[Held]]) -> None:
        """Join.

        Args:
            on_news: receives what other replicas publish.
            on_loss: called if the directory may have lost records.
            in_use: returns what must not expire.
        """

    async def leave(self) -> None:
        """Announce that this replica is about to end."""

    async def stop(self) -> None:
        """Disconnect. Others may take what is still here."""

    def publish(self, news: bytes) -> None:
        """Send ``news`` to all other replicas, without waiting."""

    async def locate(self, held: Held, principal: str) -> Place | None:
        """Return where ``held`` is; None if nothing of ``principal`` has this id."""

    async def take(self, held: Held, owner: str, principal: str) -> Fields | None:
        """Make this replica the owner, if ``owner`` still is, and return the record; None if it was not possible."""

    async def write(self, writes: Iterable[Write]) -> list[Held]:
        """Write records of this replica; return those that belong to another replica by now."""

    async def forget(self, held: Iterable[Held]) -> None:
        """Remove records of this replica."""

    async def release(self, held: Iterable[Held]) -> None:
        """Let any replica take these records of this replica."""


class Siblings:
    """The workers of one machine. Each has two sockets in a private folder. Ids begin with the number of a worker.

    There are no records: what a worker had in memory ends with it.
    """

    keeps_records = False

    def __init__(self, folder: str, number: int) -> None:
        self.folder = folder
        self.id = str(number)
        self.news: socket.socket | None = None

    @property
    def address(self) -> str:
        """The path of the socket for requests."""
        return self._path(self.id)

    def name(self, id_: str) -> str:
        """Return ``id_`` after the number of this worker."""
        return f"{self.id}-{id_}"

    async def start(self, on_news: OnNews, on_loss: Callable[[], None], in_use: Callable[[], Iterable[Held]]) -> None:
        """Receive news."""
        if sys.platform == "win32":
            raise NotImplementedError("--workers")
        self.news = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.news.setblocking(False)
        self.news.bind(self.address + _NEWS)
        asyncio.get_running_loop().add_reader(self.news, self._receive, self.news, on_news)

    async def leave(self) -> None:
        """Do nothing."""

    async def stop(self) -> None:
        """Remove the sockets."""
        if self.news is not None:
            asyncio.get_running_loop().remove_reader(self.news)
            self.news.close()
        self._remove(self.id)

    def publish(self, news: bytes) -> None:
        """Send ``news`` to the other workers. One that cannot receive it now does not get it."""
        for name in os.listdir(self.folder):
            if name.endswith(_NEWS) and name != self.id + _NEWS and self.news is not None:
                with contextlib.suppress(OSError):
                    self.news.sendto(news, os.path.join(self.folder, name))

    async def locate(self, held: Held, principal: str) -> Place | None:
        """Return the worker that the id names, if it has sockets."""
        match = _NUMBER.match(held.id)
        if match is None or not os.path.exists(self._path(match[1])):
            return None
        return Place(match[1], self._path(match[1]))

    async def take(self, held: Held, owner: str, principal: str) -> Fields | None:
        """Return None, and remove the sockets of a worker that has ended."""
        self._remove(owner)
        return None

    async def write(self, writes: Iterable[Write]) -> list[Held]:
        """Do nothing."""
        return []

    async def forget(self, held: Iterable[Held]) -> None:
        """Do nothing."""

    async def release(self, held: Iterable[Held]) -> None:
        """Do nothing."""

    def _path(self, worker: str) -> str:
        return os.path.join(self.folder, worker)

    def _remove(self, worker: str) -> None:
        for path in (self._path(worker), self._path(worker) + _NEWS):
            with contextlib.suppress(OSError):
                os.unlink(path)

    @staticmethod
    def _receive(news: socket.socket, on_news: OnNews) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                on_news(news.recv(1 << 20))
