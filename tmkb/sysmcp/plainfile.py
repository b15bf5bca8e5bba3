"""Plain files, read whole: never through a link at the end of the path, never from what is no plain file."""

from __future__ import annotations

import io
import os
import stat

from tmkb.providers.operation import Pause
from tmkb.sysmcp.faults import TooLarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

CHUNK = 1 << 22  # bytes that are read at a time, in about 2 ms
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def open_plain(path: str, folder: int | None = None) -> int:
    """A descriptor to read ``path``, in the open ``folder`` if given. Raises OSError, too where it is no plain file."""
    descriptor = os.open(path, _READ | _SAFE, dir_fd=folder)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(path)


def read(descriptor: int, most: int) -> Generator[Pause, None, bytearray]:
    """All bytes of the file. Raises TooLarge; OSError where it changes meanwhile, as a mixture is neither state."""
    before = os.fstat(descriptor)
    if before.st_size > most:
        raise TooLarge
    data, at = bytearray(before.st_size), 0
    file = io.FileIO(descriptor, closefd=False)
    while got := file.readinto(memoryview(data)[at : at + CHUNK]):
        at += got
        yield Pause(0)
    if identity(os.fstat(descriptor)) != identity(before) or at != len(data):
        raise OSError(descriptor)
    return data


def identity(status: os.stat_result) -> tuple[int, ...]:
    """What differs when a file is another one, or was written to."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
