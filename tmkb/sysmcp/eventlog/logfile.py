"""An open log file. Only regular files are opened, and no link at the end of a path is followed."""

from __future__ import annotations

import os

from tmkb.sysmcp import plainfile
from tmkb.sysmcp.eventlog.logquery import Unreadable


class LogFile:
    """A file open for reading; the caller closes it. Raises Unreadable."""

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
        """Close the file."""
        os.close(self.fd)

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from ``offset`` on, fewer at the end of the file."""
        os.lseek(self.fd, offset, os.SEEK_SET)
        return os.read(self.fd, size)
