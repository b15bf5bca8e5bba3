"""Replace a file of another program: with a backup and a lock, at once or not at all."""

from __future__ import annotations

import contextlib
import datetime
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from tmkb.clients.faults import ConfigurationError
from tmkb.errors import Problem

Change = Callable[[bytes | None], bytes | None]
_KEPT = 5  # backups of one file
_TRIES = 5  # if the file changes meanwhile
_WAIT = 10.0  # seconds for a lock
_STALE = 10.0  # seconds; a client that still holds its lock has changed the time of the folder since
_STAMP = "%Y%m%dT%H%M%S"


def is_there(path: str) -> bool:
    """Return whether there is something at ``path``, or that cannot be found out, which reading it reports."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def backups(path: str) -> list[str]:
    """Return our backups of the file at ``path``, the newest first; they are beside the target of a link."""
    folder, name = os.path.split(os.path.realpath(path))
    form = re.compile(re.escape(name) + r"\.tmkb-\d{8}T\d{6}\.bak")
    try:
        found = [entry for entry in os.listdir(folder) if form.fullmatch(entry)]
    except OSError:
        return []
    return [os.path.join(folder, entry) for entry in sorted(found, reverse=True)]


def next_backup(path: str) -> str:
    """Return the name of the next backup of the file at ``path``: with the time in UTC, later than all others."""
    real, now = os.path.realpath(path), datetime.datetime.now(datetime.UTC)
    latest = "".join(backups(path)[:1])
    while (name := f"{real}.tmkb-{now.strftime(_STAMP)}.bak") <= latest or os.path.lexists(name):
        now += datetime.timedelta(seconds=1)
    return name


def replace(path: str, shown: str, change: Change, is_private: bool = False, lock: str | None = None) -> str | None:
    """Replace the content of a file; a link is followed.

    Args:
        path: of the file; its folder is created.
        shown: the file name in problems.
        change: the content, None if the file is missing → the new content, None to delete it. It is called again if the
            file changed meanwhile.
        is_private: whether only the user can read a file that is created.
        lock: the path of a folder that the client creates while it writes to the file.

    Returns:
        The path of the backup; None if there is none, because the file was missing, is deleted, or is not changed.

    Raises:
        ConfigurationError: the file cannot be written, or does not stop changing. It is as it was.
    """
    real = os.path.realpath(path)
    made: list[str] = []
    try:
        _make_folders(os.path.dirname(real), made)
        with _lock(real, shown):
            _remove_leftovers(real)
            for _ in range(_TRIES):
                before = _read(real)
                after = change(before)
                if after == before:
                    return None
                with contextlib.suppress(_Changed):
                    return _exchange(real, shown, before, after, is_private, lock)
        raise ConfigurationError(Problem("client_restless", shown, 0, 0))
    except OSError as error:
        raise ConfigurationError(Problem("client_not_written", shown, 0, 0, reason=error.strerror)) from error
    finally:
        for folder in reversed(made):  # only those that stayed empty
            with contextlib.suppress(OSError):
                os.rmdir(folder)


class _Changed(Exception):
    """Another program changed the file."""


def _exchange(
    real: str, shown: str, before: bytes | None, after: bytes | None, is_private: bool, lock: str | None
) -> str | None:
    """Write the new content. Raises OSError and _Changed."""
    status = None if before is None else os.stat(real)
    if status is not None and not status.st_mode & stat.S_IWUSR:
        raise ConfigurationError(Problem("client_read_only", shown, 0, 0))
    if after is None:
        with _folder_lock(lock, shown):
            _require_unchanged(real, before)
            os.unlink(real)
        return None
    with contextlib.ExitStack() as undo:
        temporary = _temporary(real, after, status, is_private)
        undo.callback(_remove, temporary)
        backup = None if before is None or status is None else _back_up(real, before, status)
        undo.callback(_remove, backup)
        with _folder_lock(lock, shown):  # for as short as possible: Claude Code does not wait, but writes without it
            _require_unchanged(real, before)
            os.replace(temporary, real)
        undo.pop_all()
    _sync_folder(os.path.dirname(real))
    _prune(real)
    return backup


def _remove_leftovers(real: str) -> None:
    """Remove temporary files of processes that were killed: while we have the lock, no other process has any."""
    folder, name = os.path.split(real)
    try:
        entries = os.listdir(folder)
    except OSError:  # it can be writable and not readable
        return
    for entry in entries:
        if entry.startswith(f".{name}.tmkb-") and entry.endswith(".tmp"):
            _remove(os.path.join(folder, entry))


def _prune(real: str) -> None:
    for old in backups(real)[_KEPT:]:
        _remove(old)


def _require_unchanged(real: str, before: bytes | None) -> None:
    if _read(real) != before:
        raise _Changed


def _remove(path: str | None) -> None:
    if path is not None:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _temporary(real: str, content: bytes, status: os.stat_result | None, is_private: bool) -> str:
    """Write ``content`` to a new file beside ``real``, with its mode and owner, and return its path."""
    folder, name = os.path.split(real)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.tmkb-", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            _adopt(file.fileno(), folder, status, 0o600 if is_private else 0o666 & ~_umask())
            os.fsync(file.fileno())
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def _back_up(real: str, content: bytes, status: os.stat_result) -> str:
    """Write ``content`` to a new backup of the file, with its mode and owner, and return its path."""
    temporary = _temporary(real, content, status, True)
    try:
        os.replace(temporary, backup := next_backup(real))  # which is complete, or not there
    except BaseException:
        os.unlink(temporary)
        raise
    return backup


def _adopt(handle: int, folder: str, status: os.stat_result | None, mode: int) -> None:
    """Give a new file the mode and owner of ``status``; without, ``mode`` and, by root, the owner of ``folder``.

    Its name may lead to another file meanwhile, because another user may own the folder.
    """
    if sys.platform != "win32":
        own, owner = os.fstat(handle), status or _owner(folder)
        if owner is not None and (own.st_uid, own.st_gid) != (owner.st_uid, owner.st_gid):
            os.fchown(handle, owner.st_uid, owner.st_gid)
        os.fchmod(handle, mode if status is None else stat.S_IMODE(status.st_mode))


def _owner(folder: str) -> os.stat_result | None:
    """Return whose files root, who may have the home folder of another user, creates in a folder; None for others."""
    return os.stat(folder) if sys.platform != "win32" and os.geteuid() == 0 else None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _make_folders(folder: str, made: list[str]) -> None:
    """Create a folder and those above it; collect the new ones."""
    if not os.path.isdir(folder):
        _make_folders(os.path.dirname(folder), made)
        os.mkdir(folder)
        made.append(folder)
        if sys.platform != "win32" and (owner := _owner(os.path.dirname(folder))):
            os.chown(folder, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _sync_folder(folder: str) -> None:
    """Make the new name of a file last, where a folder can be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def _lock(real: str, shown: str) -> Iterator[None]:
    """Keep other processes of ours from the file. The operating system releases the lock of a process that ended."""
    path, until = f"{real}.tmkb.lock", time.monotonic() + _WAIT
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        if _is_locked(handle) and _is_same(handle, path):
            break
        os.close(handle)
        if time.monotonic() > until:
            raise ConfigurationError(Problem("client_locked", shown, 0, 0, lock=path))
        time.sleep(0.05)
    try:
        yield
    finally:
        if sys.platform == "win32":
            os.close(handle)
        with contextlib.suppress(OSError):  # Windows: the next process has it open
            os.unlink(path)
        if sys.platform != "win32":
            os.close(handle)


@contextlib.contextmanager
def _folder_lock(path: str | None, shown: str) -> Iterator[None]:
    """Keep a client from the file while we change it, by the folder that it creates itself for that."""
    until = time.monotonic() + _WAIT
    while path is not None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
            break
        with contextlib.suppress(FileNotFoundError):
            if time.time() - os.stat(path).st_mtime > _STALE:
                os.rmdir(path)
                continue
        if time.monotonic() > until:
            raise ConfigurationError(Problem("client_locked", shown, 0, 0, lock=path))
        time.sleep(0.05)
    try:
        yield
    finally:
        if path is not None:
            with contextlib.suppress(OSError):
                os.rmdir(path)


def _is_locked(handle: int) -> bool:
    """Lock an open file; return whether that worked."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_same(handle: int, path: str) -> bool:
    """Return whether an open file is still the one at ``path``, which another process may have deleted."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except OSError:
        return False
