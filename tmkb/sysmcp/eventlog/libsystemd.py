"""The journal of systemd as its own library reads it: the few functions of sd-journal that are needed, by ctypes.

The library works without systemd running. A `Handle` belongs to one query and one thread.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint64, c_void_p

from tmkb.sysmcp.eventlog.logquery import Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LIBRARY = "libsystemd.so.0"
_OUT = POINTER(c_void_p)
_ARGUMENTS = {
    "open_directory": [_OUT, c_char_p, c_int],
    "open_files": [_OUT, POINTER(c_char_p), c_int],
    "add_match": [c_void_p, c_char_p, c_size_t],
    "add_conjunction": [c_void_p],
    "add_disjunction": [c_void_p],
    "seek_head": [c_void_p],
    "seek_tail": [c_void_p],
    "seek_realtime_usec": [c_void_p, c_uint64],
    "seek_cursor": [c_void_p, c_char_p],
    "test_cursor": [c_void_p, c_char_p],
    "next_skip": [c_void_p, c_uint64],
    "previous_skip": [c_void_p, c_uint64],
    "get_data": [c_void_p, c_char_p, POINTER(c_void_p), POINTER(c_size_t)],
    "get_realtime_usec": [c_void_p, POINTER(c_uint64)],
    "get_cursor": [c_void_p, POINTER(c_void_p)],
    "query_unique": [c_void_p, c_char_p],
    "enumerate_unique": [c_void_p, POINTER(c_void_p), POINTER(c_size_t)],
}


@functools.cache
def _library() -> ctypes.CDLL:
    """Raises OSError where there is none."""
    library = ctypes.CDLL(_LIBRARY)
    for name, arguments in _ARGUMENTS.items():
        getattr(library, f"sd_journal_{name}").argtypes = arguments
    library.sd_journal_close.argtypes = [c_void_p]
    library.sd_journal_close.restype = None
    return library


class Handle:
    """An open journal, at some entry of those that match. Close it.

    Its methods raise `Unreadable` where the library finds the files damaged.
    """

    def __init__(self, path: str) -> None:
        """``path`` is a folder of journal files, or one of them."""
        try:
            self.library = _library()
        except OSError:
            raise Unreadable("needs_libsystemd") from None
        self.handle = c_void_p()
        self.data = c_void_p()
        self.size = c_size_t()
        self.number = c_uint64()
        name = os.fsencode(path)
        if os.path.isdir(path):
            result = self.library.sd_journal_open_directory(byref(self.handle), name, 0)
        else:
            result = self.library.sd_journal_open_files(byref(self.handle), (c_char_p * 2)(name, None), 0)
        _checked(result)

    def close(self) -> None:
        """Let go of the files."""
        self.library.sd_journal_close(self.handle)

    def match(self, field: str, values: list[str]) -> None:
        """Only entries with one of these values. Matches of several fields have all to hold."""
        for value in values:
            match = f"{field}={value}".encode()
            _checked(self.library.sd_journal_add_match(self.handle, match, len(match)))

    def both(self) -> None:
        """What matched so far, and what is asked for next."""
        _checked(self.library.sd_journal_add_conjunction(self.handle))

    def either(self) -> None:
        """What matched since `both`, or what is asked for next."""
        _checked(self.library.sd_journal_add_disjunction(self.handle))

    def to_end(self, newest: bool) -> None:
        """Before the oldest or behind the newest entry: `skip` comes next, as after each way to a place."""
        seek = self.library.sd_journal_seek_tail if newest else self.library.sd_journal_seek_head
        _checked(seek(self.handle))

    def to_time(self, time: int) -> None:
        """Where that time is, in microseconds since 1970."""
        _checked(self.library.sd_journal_seek_realtime_usec(self.handle, max(0, time)))

    def to_cursor(self, cursor: str) -> None:
        """Where the entry is that has this cursor, or was. Raises ValueError where that is none."""
        if self.library.sd_journal_seek_cursor(self.handle, cursor.encode()) < 0:
            raise ValueError(cursor)

    def is_at(self, cursor: str) -> bool:
        """Whether this is the entry with that cursor."""
        return bool(self.library.sd_journal_test_cursor(self.handle, cursor.encode()) > 0)

    def skip(self, count: int, oldest_first: bool) -> int:
        """Go on by so many entries; by how many it went."""
        move = self.library.sd_journal_next_skip if oldest_first else self.library.sd_journal_previous_skip
        return _checked(move(self.handle, count))

    def field(self, name: bytes) -> str | None:
        """A field of this entry; None where it has none, or none that can be read."""
        found = self.library.sd_journal_get_data(self.handle, name, byref(self.data), byref(self.size))
        if found < 0:
            return None
        return ctypes.string_at(self.data, self.size.value)[len(name) + 1 :].decode("utf-8", "replace")

    def time(self) -> int:
        """When this entry was written, in microseconds since 1970."""
        _checked(self.library.sd_journal_get_realtime_usec(self.handle, byref(self.number)))
        return self.number.value

    def cursor(self) -> str:
        """What names this entry."""
        text = c_void_p()
        _checked(self.library.sd_journal_get_cursor(self.handle, byref(text)))
        try:
            return ctypes.string_at(text).decode("ascii")
        finally:
            _libc().free(text)

    def values(self, field: str) -> Iterator[str]:
        """All values that a field has anywhere."""
        if self.library.sd_journal_query_unique(self.handle, field.encode()) < 0:
            return
        while self.library.sd_journal_enumerate_unique(self.handle, byref(self.data), byref(self.size)) > 0:
            yield ctypes.string_at(self.data, self.size.value).decode("utf-8", "replace").partition("=")[2]


@functools.cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None)
    library.free.argtypes = [c_void_p]
    library.free.restype = None
    return library


def _checked(result: int) -> int:
    if result >= 0:
        return result
    if -result in (errno.EACCES, errno.EPERM):
        raise Unreadable("denied")
    raise Unreadable("missing" if -result == errno.ENOENT else "corrupt")
