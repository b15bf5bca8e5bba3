"""A file of a log, open for reading. Only a regular file is one, and opening it waits for nothing."""

from __future__ import annotations

import os
import stat

from tmkb.system.eventlog.logquery import Unreadable

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class LogFile:
    """Close it. Raises `Unreadable` where there is no such file, or none for us."""

    def __init__(self, path: str) -> None:
        try:
            self.fd = os.open(path, _FLAGS)
        except PermissionError:
            raise Unreadable("denied") from None
        except OSError:
            raise Unreadable("missing") from None
        self.stat = os.fstat(self.fd)
        self.size = self.stat.st_size
        if not stat.S_ISREG(self.stat.st_mode):
            self.close()
            raise Unreadable("missing")

    def close(self) -> None:
        """Close it."""
        os.close(self.fd)

    def read(self, offset: int, size: int) -> bytes:
        """So many bytes from ``offset`` on; fewer where the file ends."""
        os.lseek(self.fd, offset, os.SEEK_SET)
        return os.read(self.fd, size)
