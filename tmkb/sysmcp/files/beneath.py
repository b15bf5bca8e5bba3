"""Open files beneath an open folder, and nothing else, even while other processes rename files.

A path is resolved once, never checked and then used. The kernel resolves it beneath the folder with openat2(2). Where
the kernel cannot, this module resolves it name by name and follows no link. A file with hard links can be opened by
each of its names.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

# linux/openat2.h; the number of the system call is the same on all architectures except Alpha
_OPENAT2 = 437
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_TRIES = 16  # openat2 fails with EAGAIN if a rename interferes

IS_SUPPORTED = sys.platform == "linux"
if sys.platform == "linux":
    _ROOT = os.O_PATH | os.O_DIRECTORY
    INSPECT = os.O_PATH | os.O_NOFOLLOW  # for the status only, also of a link
    READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY  # a pipe without a writer does not block
    FOLDER = os.O_RDONLY | os.O_DIRECTORY
    SUBFOLDER = FOLDER | os.O_NOFOLLOW
    _CLOEXEC, _DIRECTORY = os.O_CLOEXEC, os.O_DIRECTORY
else:
    INSPECT = READ = FOLDER = SUBFOLDER = _ROOT = _CLOEXEC = _DIRECTORY = 0


@contextmanager
def closing_fd(fd: int) -> Iterator[int]:
    """Close the descriptor ``fd`` at the end of the block."""
    try:
        yield fd
    finally:
        os.close(fd)


def open_root(path: str) -> int:
    """Open a folder at a trusted path. Raises OSError."""
    return os.open(path, _ROOT)


def open_below(root: int, names: Sequence[str], flags: int, follow: bool = False) -> int:
    """Open the path ``names`` below the folder ``root``; without names, the folder itself.

    With ``follow`` and openat2, links that stay beneath the folder are followed; the last one only to a `FOLDER`.
    Raises OSError: ELOOP or EXDEV for any other link.
    """
    try:
        return open_by_kernel(root, names, flags, follow)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):  # an old kernel, or a sandbox that forbids openat2
            raise
    return open_by_name(root, names, flags)


def open_by_kernel(root: int, names: Sequence[str], flags: int, follow: bool) -> int:
    """Open a path with openat2. Raises OSError: ENOSYS or EPERM if it is not available."""
    import ctypes

    resolve = _BENEATH | _NO_MAGICLINKS | (0 if follow else _NO_SYMLINKS)
    how = (ctypes.c_uint64 * 3)(flags | _CLOEXEC, 0, resolve)
    path = os.fsencode("/".join(names) or ".")
    for _ in range(_TRIES):
        fd: int = _syscall()(_OPENAT2, root, path, how, ctypes.sizeof(how))
        code = ctypes.get_errno()
        if fd >= 0:
            return fd
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(code, os.strerror(code))


def open_by_name(root: int, names: Sequence[str], flags: int) -> int:
    """Open a path name by name, without following links. Raises OSError."""
    parents, last = (names, ".") if flags & _DIRECTORY or not names else (names[:-1], names[-1])
    folder = os.open(".", INSPECT, dir_fd=root)
    try:
        for name in parents:
            child = os.open(name, INSPECT, dir_fd=folder)
            os.close(folder)
            folder = child
            if stat.S_ISLNK(os.fstat(folder).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return os.open(last, flags, dir_fd=folder)
    finally:
        os.close(folder)


@functools.cache
def _syscall() -> Any:
    import ctypes

    call = ctypes.CDLL(None, use_errno=True).syscall
    call.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
    call.restype = ctypes.c_long
    return call
