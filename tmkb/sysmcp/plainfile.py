"""Read regular files whole. Links at the end of the path and other kinds of files are refused."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Generator

from tmkb.providers.operation import Pause
from tmkb.sysmcp.faults import TooLarge

CHUNK = 1 << 22  # bytes per read, which takes about 2 ms
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def open_plain(path: str, folder: int | None = None) -> int:
    """Open a regular file for reading; ``path`` is relative to the descriptor ``folder``. Raises OSError."""
    descriptor = os.open(path, _READ | _SAFE, dir_fd=folder)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(path)


def read(descriptor: int, limit: int) -> Generator[Pause, None, bytearray]:
    """Read the whole file. Raises TooLarge above ``limit`` bytes; OSError if the file changes during the read."""
    before = os.fstat(descriptor)
    if before.st_size > limit:
        raise TooLarge
    data, at = bytearray(before.st_size), 0
    file = io.FileIO(descriptor, closefd=False)
    while count := file.readinto(memoryview(data)[at : at + CHUNK]):
        at += count
        yield Pause(0)
    if identity(os.fstat(descriptor)) != identity(before) or at != len(data):
        raise OSError(descriptor)
    return data


def identity(status: os.stat_result) -> tuple[int, ...]:
    """Return values that change when the file is replaced or written."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
