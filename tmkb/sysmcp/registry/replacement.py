"""A file that is replaced as a whole, under a lock and with a backup: readers see the old one or the new one.

Names are looked up in folders that are held open, and no link is followed. A process may be killed anywhere: its lock
goes with it, and what it has left lying is removed by the next.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from contextlib import ExitStack, suppress

from tmkb.sysmcp import plainfile
from tmkb.sysmcp.faults import Changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType

    from tmkb.providers.operation import Pause

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Replacement:
    """Of the file ``path``: `lock`, `read`, `draft`, `drafted`, `back_up`, `commit`, in this order.

    To be used with ``with``. Everything raises OSError where the system refuses.
    """

    def __init__(self, path: str) -> None:
        folder, self.name = os.path.split(os.path.abspath(path))
        self.opened = ExitStack()
        self.folder = self._keep(os.open(folder, _FOLDER))
        self.draft_name = f".{self.name}.draft"

    def __enter__(self) -> Replacement:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.opened.close()

    def lock(self) -> bool:
        """Become the one who may replace the file; False where another is."""
        name = f"{self.name}.lock"
        descriptor = os.open(name, _LOCK, 0o600, dir_fd=self.folder)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            current = os.stat(name, dir_fd=self.folder, follow_symlinks=False)
        except (BlockingIOError, FileNotFoundError):
            os.close(descriptor)
            return False
        if not os.path.samestat(current, os.fstat(descriptor)):  # somebody has removed it, and others lock a new one
            os.close(descriptor)
            return False
        self._keep(descriptor)
        _remove(self.draft_name, self.folder)
        return True

    def read(self, most: int) -> Generator[Pause, None, bytearray]:
        """What the file holds, which is what is replaced. Raises TooLarge."""
        descriptor = self._keep(plainfile.open_plain(self.name, self.folder))
        self.status = os.fstat(descriptor)
        self.before = yield from plainfile.read(descriptor, most)
        return self.before

    def draft(self) -> str:
        """A path to a copy beside it, to be changed in place."""
        self.descriptor = self._keep(os.open(self.draft_name, _NEW, 0o600, dir_fd=self.folder))
        self.opened.callback(_remove, self.draft_name, self.folder)
        _write(self.descriptor, self.before)
        return f"/dev/fd/{self.descriptor}"

    def drafted(self, most: int) -> Generator[Pause, None, bytearray]:
        """What the copy holds now, as it is on the disk. Raises TooLarge."""
        ours = os.fstat(self.descriptor)
        if (ours.st_uid, ours.st_gid) != (self.status.st_uid, self.status.st_gid):
            os.fchown(self.descriptor, self.status.st_uid, self.status.st_gid)
        os.fchmod(self.descriptor, self.status.st_mode & 0o7777)
        os.fsync(self.descriptor)
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        return (yield from plainfile.read(self.descriptor, most))

    def check(self) -> None:
        """Raises Changed where the file does not hold any more what was read."""
        try:
            descriptor = plainfile.open_plain(self.name, self.folder)
        except FileNotFoundError:
            raise Changed from None
        try:
            for start in range(0, len(self.before) + 1, plainfile.CHUNK):
                if os.read(descriptor, plainfile.CHUNK) != self.before[start : start + plainfile.CHUNK]:
                    raise Changed
        finally:
            os.close(descriptor)

    def back_up(self, folder: str, label: str, keep: int) -> str:
        """Keep what is replaced in ``folder``, and of such files the newest ``keep``; the new one's name."""
        backups = self._keep(os.open(folder, _FOLDER | os.O_NOFOLLOW))
        part = f".{label}.part"
        _remove(part, backups)
        descriptor = os.open(part, _NEW, 0o600, dir_fd=backups)
        try:
            _write(descriptor, self.before)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        earlier = _backups(os.listdir(backups), label)
        number = 1 + max(earlier, default=0)
        name = f"{label}.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.{number}.bak"
        os.rename(part, name, src_dir_fd=backups, dst_dir_fd=backups)
        os.fsync(backups)
        for old in sorted(earlier)[: -keep + 1 or None]:
            _remove(earlier[old], backups)
        return name

    def commit(self) -> None:
        """Put the copy in the place of the file. Raises Changed."""
        status = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        if plainfile.identity(status) != plainfile.identity(self.status):
            raise Changed
        os.replace(self.draft_name, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        os.fsync(self.folder)

    def _keep(self, descriptor: int) -> int:
        self.opened.callback(os.close, descriptor)
        return descriptor


def _backups(names: list[str], label: str) -> dict[int, str]:
    """Those of ``names`` that are backups under ``label``, by their numbers, which only grow: clocks may go back."""
    form = re.compile(rf"{re.escape(label)}\.\d{{8}}T\d{{6}}Z\.(\d{{1,9}})\.bak", re.ASCII)
    return {int(match[1]): name for name in names if (match := form.fullmatch(name))}


def _remove(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _write(descriptor: int, data: bytearray) -> None:
    with memoryview(data) as rest:
        at = 0
        while at < len(data):
            at += os.write(descriptor, rest[at:])
