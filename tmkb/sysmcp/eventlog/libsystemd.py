"""Read the systemd journal with libsystemd, through ctypes. systemd itself need not run.

A `Handle` belongs to one query and one thread.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Iterator
from ctypes import byref, c_char_p, c_size_t, c_uint64, c_void_p
from typing import Any

from tmkb.sysmcp.eventlog.logquery import Unreadable

_LIBRARY = "libsystemd.so.0"


@functools.cache
def _library() -> ctypes.CDLL:
    """Load the library. Raises OSError."""
    return ctypes.CDLL(_LIBRARY)


class Handle:
    """An open journal, positioned at one of the matching entries; the caller closes it.

    Methods raise Unreadable if the files are damaged.
    """

    def __init__(self, path: str) -> None:
        """``path``: a folder of journal files, or one file."""
        try:
            self.library = _library()
        except OSError:
            raise Unreadable("needs_libsystemd") from None
        self.handle = c_void_p()
        self.data = c_void_p()
        self.size = c_size_t()
        name = os.fsencode(path)
        if os.path.isdir(path):
            result = self.library.sd_journal_open_directory(byref(self.handle), c_char_p(name), 0)
        else:
            result = self.library.sd_journal_open_files(byref(self.handle), (c_char_p * 2)(name, None), 0)
        _checked(result)

    def _call(self, function: str, *arguments: Any) -> int:
        """Call ``sd_journal_<function>``. Integers in ``arguments`` must be ctypes objects of the right size."""
        result: int = getattr(self.library, f"sd_journal_{function}")(self.handle, *arguments)
        return result

    def close(self) -> None:
        """Close the files."""
        self._call("close")

    def match(self, field: str, values: list[str]) -> None:
        """Require one of ``values`` in ``field``; all fields must match."""
        for value in values:
            match = f"{field}={value}".encode()
            _checked(self._call("add_match", match, c_size_t(len(match))))

    def conjunction(self) -> None:
        """Combine the matches so far with the following ones by AND."""
        _checked(self._call("add_conjunction"))

    def disjunction(self) -> None:
        """Combine the matches since the last `conjunction` with the following ones by OR."""
        _checked(self._call("add_disjunction"))

    def seek_edge(self, newest: bool) -> None:
        """Go before the oldest or after the newest entry. `skip` must follow, as after each seek."""
        _checked(self._call("seek_tail" if newest else "seek_head"))

    def seek_time(self, time: int) -> None:
        """Go to a time in microseconds since 1970."""
        _checked(self._call("seek_realtime_usec", c_uint64(max(0, time))))

    def seek_cursor(self, cursor: str) -> None:
        """Go to the entry with this cursor, or where it was. Raises ValueError for an invalid cursor."""
        if self._call("seek_cursor", cursor.encode()) < 0:
            raise ValueError(cursor)

    def is_at(self, cursor: str) -> bool:
        """Return whether the current entry has this cursor."""
        return self._call("test_cursor", cursor.encode()) > 0

    def skip(self, count: int, oldest_first: bool) -> int:
        """Move by ``count`` entries; return the number of entries actually moved."""
        return _checked(self._call("next_skip" if oldest_first else "previous_skip", c_uint64(count)))

    def field(self, name: bytes) -> str | None:
        """Return a field of the current entry; None if it is missing or unreadable."""
        if self._call("get_data", name, byref(self.data), byref(self.size)) < 0:
            return None
        return ctypes.string_at(self.data, self.size.value)[len(name) + 1 :].decode("utf-8", "replace")

    def time(self) -> int:
        """Return the time of the current entry in microseconds since 1970."""
        time = c_uint64()
        _checked(self._call("get_realtime_usec", byref(time)))
        return time.value

    def cursor(self) -> str:
        """Return the cursor of the current entry."""
        text = c_void_p()
        _checked(self._call("get_cursor", byref(text)))
        try:
            return ctypes.string_at(text).decode("ascii")
        finally:
            ctypes.CDLL(None).free(text)

    def values(self, field: str) -> Iterator[str]:
        """Yield all values of a field in the journal."""
        if self._call("query_unique", field.encode()) < 0:
            return
        while self._call("enumerate_unique", byref(self.data), byref(self.size)) > 0:
            yield ctypes.string_at(self.data, self.size.value).decode("utf-8", "replace").partition("=")[2]


def _checked(result: int) -> int:
    if result >= 0:
        return result
    if -result in (errno.EACCES, errno.EPERM):
        raise Unreadable("denied")
    raise Unreadable("missing" if -result == errno.ENOENT else "corrupt")
