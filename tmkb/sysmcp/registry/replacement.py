"""Replace a file as a whole, under a lock and with a backup. A reader sees either the old file or the new one.

Names are resolved in folders that stay open, and no link is followed. If a process is killed, its lock is released, and
the next writer removes its draft.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, suppress

from tmkb.providers.operation import Pause
from tmkb.sysmcp import plainfile
from tmkb.sysmcp.faults import Changed

if sys.platform == "win32":  # where no library writes hives
    _NEW = _LOCK = _FOLDER = _BACKUPS = 0
else:
    _NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    _LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    _FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    _BACKUPS = _FOLDER | os.O_NOFOLLOW


class Replacement(ExitStack):
    """The replacement of the file ``path``; use it with ``with``.

    Call `lock`, `read`, `create_draft`, `read_draft`, `back_up` and `commit` in this order. All raise OSError.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        folder, self.name = os.path.split(os.path.abspath(path))
        self.folder = self._own(os.open(folder, _FOLDER))
        self.draft_name = f".{self.name}.draft"

    def lock(self) -> bool:
        """Acquire the lock; return False if another process has it."""
        if sys.platform == "win32":
            raise NotImplementedError
        import fcntl

        name = f"{self.name}.lock"
        descriptor = os.open(name, _LOCK, 0o600, dir_fd=self.folder)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            current = os.stat(name, dir_fd=self.folder, follow_symlinks=False)
            is_current = os.path.samestat(current, os.fstat(descriptor))  # else others lock a new file of this name
        except (BlockingIOError, FileNotFoundError):
            is_current = False
        if not is_current:
            os.close(descriptor)
            return False
        self._own(descriptor)
        _remove(self.draft_name, self.folder)
        return True

    def read(self, limit: int) -> Generator[Pause, None, bytearray]:
        """Return the content of the file. Raises TooLarge."""
        descriptor = self._own(plainfile.open_plain(self.name, self.folder))
        self.status = os.fstat(descriptor)
        self.before = yield from plainfile.read(descriptor, limit)
        return self.before

    def create_draft(self) -> str:
        """Copy the content to a draft in the same folder; return a path to change the draft in place."""
        self.draft = self._own(os.open(self.draft_name, _NEW, 0o600, dir_fd=self.folder))
        self.callback(_remove, self.draft_name, self.folder)
        _write(self.draft, self.before)
        return f"/dev/fd/{self.draft}"

    def read_draft(self, limit: int) -> Generator[Pause, None, bytearray]:
        """Give the draft the owner and mode of the file, flush it, and return its content. Raises TooLarge."""
        if sys.platform == "win32":
            raise NotImplementedError
        ours = os.fstat(self.draft)
        if (ours.st_uid, ours.st_gid) != (self.status.st_uid, self.status.st_gid):
            os.fchown(self.draft, self.status.st_uid, self.status.st_gid)
        os.fchmod(self.draft, self.status.st_mode & 0o7777)
        os.fsync(self.draft)
        os.lseek(self.draft, 0, os.SEEK_SET)
        return (yield from plainfile.read(self.draft, limit))

    def check(self) -> None:
        """Raise Changed if the file differs from what `read` returned."""
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
        """Save the old content in ``folder``, delete all but the newest ``keep`` backups, and return the file name."""
        backups = self._own(os.open(folder, _BACKUPS))
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
        """Rename the draft to the file. Raises Changed."""
        status = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        if plainfile.identity(status) != plainfile.identity(self.status):
            raise Changed
        os.replace(self.draft_name, self.name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        os.fsync(self.folder)

    def _own(self, descriptor: int) -> int:
        """Close ``descriptor`` at the end."""
        self.callback(os.close, descriptor)
        return descriptor


def _backups(names: list[str], label: str) -> dict[int, str]:
    """Return number → name of the backups with ``label``. Numbers only grow, while clocks may go back."""
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
