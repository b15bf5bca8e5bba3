"""Read untrusted text files: regular files only, up to a size limit, as UTF-8. Write files atomically.

FIFOs, devices and sockets are refused: reading one could block forever. Packed files of a wheel are read like others.
"""

from __future__ import annotations

import os
import stat

from tmkb.errors import DocumentError, Problem
from tmkb.schema import packed

LARGEST = 1 << 20  # bytes of one file; our largest YAML file has 61 KB, our largest example 7 KB

# O_NONBLOCK: opening a FIFO returns at once instead of waiting for a writer.
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_KINDS = {
    stat.S_IFDIR: "folder",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


def read(path: str, shown: str, limit: int = LARGEST) -> str:
    """Return the text of the file at ``path``, without a byte order mark. Line ends are not converted.

    Links are followed. ``shown``: the file name in problems. ``limit``: the maximum size in bytes.

    Raises:
        DocumentError: the file is missing, unreadable, not a regular file, larger than ``limit``, or not UTF-8.
    """
    data = read_bytes(path, shown, limit)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()  # without the byte order mark
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise DocumentError([Problem("not_utf8", shown, line, column)]) from error


def read_bytes(path: str, shown: str, limit: int = LARGEST) -> bytes:
    """Return the content of the file at ``path``.

    Raises:
        DocumentError: the file is missing, unreadable, not a regular file, or larger than ``limit``.
    """
    try:
        _refuse_special(os.stat(path), shown)  # before opening: opening a device can have side effects
        with open(os.open(path, _FLAGS), "rb") as file:
            status = os.fstat(file.fileno())
            _refuse_special(status, shown)
            # Checked before and after reading, because the file can grow in between.
            data = b"" if status.st_size > limit else file.read(limit + 1)
    except (OSError, ValueError) as error:  # ValueError: NUL in the path
        if isinstance(error, FileNotFoundError) and (content := packed.read(path)) is not None:
            return content
        reason = getattr(error, "strerror", None) or str(error)
        raise DocumentError([Problem("unreadable", shown, reason=reason)]) from error
    if status.st_size > limit or len(data) > limit:
        raise DocumentError([Problem("too_many_bytes", shown, limit=limit)])
    return data


def version(path: str) -> tuple[int, int]:
    """Return time of change and size of the file at ``path``, for a cache of what was read; zeros if it is missing."""
    try:
        status = os.stat(path)
    except OSError:  # which reading the file reports
        return 0, 0
    return status.st_mtime_ns, status.st_size


def _refuse_special(status: os.stat_result, shown: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "special file")
        raise DocumentError([Problem("not_regular", shown, kind=kind)])


def save(file: str, content: str | bytes | None) -> None:
    """Write ``content`` to ``file`` atomically, and create its folder; None deletes the file. Raises OSError."""
    import tempfile  # serving writes no such file

    if content is None:
        os.unlink(file)
        return
    folder = os.path.dirname(file) or "."
    os.makedirs(folder, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(handle, "wb") as target:
            target.write(content.encode() if isinstance(content, str) else content)
        os.chmod(temporary, os.stat(file).st_mode if os.path.exists(file) else 0o644)
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise
