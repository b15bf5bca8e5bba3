"""Plain files, read whole: never through a link at the end of the path, never from what is no plain file."""

from __future__ import annotations

import os
import stat

from tmkb.operation import Pause
from tmkb.system.faults import TooLarge

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


def read(descriptor: int, most: int) -> Generator[Pause, None, bytes]:
    """All bytes of the file. Raises TooLarge; OSError where it changes meanwhile, as a mixture is neither state."""
    before = identity(os.fstat(descriptor))
    size = os.fstat(descriptor).st_size
    if size > most:
        raise TooLarge
    data = bytearray()
    while chunk := os.read(descriptor, min(CHUNK, size - len(data))):
        data += chunk
        yield Pause(0)
    if identity(os.fstat(descriptor)) != before or len(data) != size:
        raise OSError(descriptor)
    return bytes(data)


def identity(status: os.stat_result) -> tuple[int, ...]:
    """What differs when a file is another one, or was written to."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
