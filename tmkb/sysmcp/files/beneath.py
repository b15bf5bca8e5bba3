"""Open what lies beneath a folder that is held open, and nothing else, whatever others do to names meanwhile.

A path is never checked and then used: it is resolved once, by the kernel beneath the held folder (openat2(2)) or, where
the kernel cannot, name by name with no link followed. What is asked of a file is asked of its descriptor. A file with
several hard links lies wherever it has a name.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

# linux/openat2.h. The number of the system call is the same wherever Linux runs, but on Alpha.
_OPENAT2 = 437
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_TRIES = 16  # a rename while a link is followed makes openat2 ask for another try

IS_POSSIBLE = hasattr(os, "O_PATH")  # on Linux
if IS_POSSIBLE:
    ITSELF = os.O_PATH | os.O_NOFOLLOW  # to know what is there: also of a link, and without what opening it sets off
    READING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY  # a pipe that nobody writes to does not block
    FOLDER = os.O_RDONLY | os.O_DIRECTORY


@contextmanager
def opened(fd: int) -> Iterator[int]:
    """``fd``, closed at the end."""
    try:
        yield fd
    finally:
        os.close(fd)


def root(path: str) -> int:
    """A descriptor of the folder at a path that can be trusted. Raises OSError."""
    return os.open(path, os.O_PATH | os.O_DIRECTORY)


def below(root: int, names: Sequence[str], flags: int, follow: bool = False) -> int:
    """A descriptor of what ``names`` lead to from the folder ``root``; of the folder itself where there are none.

    ``follow``: links that stay beneath the folder are followed, if the kernel can make sure of that; the last one only
    to a `FOLDER`. Raises OSError: ELOOP or EXDEV for a link that is not followed, else what the system says.
    """
    try:
        return by_kernel(root, names, flags, follow)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):  # an old kernel, or a sandbox that forbids the call
            raise
    return by_name(root, names, flags)


def by_kernel(root: int, names: Sequence[str], flags: int, follow: bool) -> int:
    """The same with openat2; ENOSYS or EPERM where there is none."""
    import ctypes

    resolve = _BENEATH | _NO_MAGICLINKS | (0 if follow else _NO_SYMLINKS)
    how = (ctypes.c_uint64 * 3)(flags | os.O_CLOEXEC, 0, resolve)
    path = os.fsencode("/".join(names) or ".")
    for _ in range(_TRIES):
        fd: int = _system_call()(_OPENAT2, root, path, how, ctypes.sizeof(how))
        code = ctypes.get_errno()
        if fd >= 0:
            return fd
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(code, os.strerror(code))


def by_name(root: int, names: Sequence[str], flags: int) -> int:
    """The same name by name, which follows no link."""
    passed, last = (names, ".") if flags & os.O_DIRECTORY or not names else (names[:-1], names[-1])
    here = os.open(".", ITSELF, dir_fd=root)
    try:
        for name in passed:
            further = os.open(name, ITSELF, dir_fd=here)
            os.close(here)
            here = further
            if stat.S_ISLNK(os.fstat(here).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return os.open(last, flags, dir_fd=here)
    finally:
        os.close(here)


@functools.cache
def _system_call() -> Any:
    import ctypes

    call = ctypes.CDLL(None, use_errno=True).syscall
    call.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
    call.restype = ctypes.c_long
    return call
