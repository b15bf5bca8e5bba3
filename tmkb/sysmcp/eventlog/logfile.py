"""A file of a log, open for reading: a plain one, never through a link at the end of its path."""

from __future__ import annotations

import os

from tmkb.sysmcp import plainfile
from tmkb.sysmcp.eventlog.logquery import Unreadable


class LogFile:
    """Close it. Raises `Unreadable` where there is no such file, or none for us."""

    def __init__(self, path: str) -> None:
        try:
            self.fd = plainfile.open_plain(path)
        except PermissionError:
            raise Unreadable("denied") from None
        except OSError:
            raise Unreadable("missing") from None
        self.stat = os.fstat(self.fd)
        self.size = self.stat.st_size

    def close(self) -> None:
        """Close it."""
        os.close(self.fd)

    def read(self, offset: int, size: int) -> bytes:
        """So many bytes from ``offset`` on; fewer where the file ends."""
        os.lseek(self.fd, offset, os.SEEK_SET)
        return os.read(self.fd, size)
