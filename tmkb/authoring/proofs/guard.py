"""Guard a process that executes proofs, with an audit hook (PEP 578), against accidents.

It is no sandbox: like pytest, `tmkb prove` runs Python from the given folders with all permissions of the user. Through
Python's own functions a proof cannot

- write, create, delete, rename, link or truncate files, change their mode, owner or times, also through a descriptor,
  or open a SQLite database, outside its temporary folder;
- make devices or FIFOs anywhere;
- start, fork or signal processes;
- connect, bind, listen, resolve names, or send datagrams, except to the sockets of the services that its pattern names;
- connect to PostgreSQL with psycopg, except to that service;
- load or call native code with ctypes.

A proof can still read every file of the user, and use memory and CPU until the timeout. It can write elsewhere through
SQLite's ATTACH, without /proc also through the descriptor of a folder or file, and through extension modules that raise
no audit event. Malicious code can remove the guard: it partly consists of replaced functions of the standard library
(`_REPLACED`).
"""

from __future__ import annotations

import os
import signal
import sys
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

# Audit events (https://docs.python.org/3/library/audit_events.html) that are always refused.
_REFUSED_EVENTS = """
ctypes.call_function ctypes.dlopen ctypes.dlsym ctypes.dlsym/handle os.exec os.fork os.forkpty os.posix_spawn
os.spawn os.startfile os.startfile/2 os.system pty.spawn socket.bind socket.connect socket.getaddrinfo
socket.gethostbyaddr socket.gethostbyname socket.getnameinfo socket.sendmsg socket.sendto subprocess.Popen
"""
_REFUSED = frozenset(_REFUSED_EVENTS.split())
# Audit events of changes to files → for each path, its position among the arguments, and that of its folder descriptor.
_CHANGES: dict[str, tuple[tuple[int, int | None], ...]] = {
    "os.chflags": ((0, None),),
    "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),),
    "os.link": ((0, 2), (1, 3)),  # a second name of a file outside would make it writable inside
    "os.mkdir": ((0, 2),),
    "os.remove": ((0, 1),),
    "os.removexattr": ((0, None),),
    "os.rename": ((0, 2), (1, 3)),
    "os.rmdir": ((0, 1),),
    "os.setxattr": ((0, None),),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),),
    "os.utime": ((0, 3),),
}
# Those that change a link itself, not its target.
_NAMES = {"os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink"}
# Functions without an audit event that are always refused: module and name.
_REPLACED = (
    ("os", "mkfifo"),
    ("os", "mknod"),
    ("posix", "mkfifo"),
    ("posix", "mknod"),
    ("signal", "pidfd_send_signal"),
    ("_posixsubprocess", "fork_exec"),  # used by multiprocessing; subprocess raises an event
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_fork: Callable[[], int] | None = getattr(os, "fork", None)  # of before any proof was executed
_forking: list[bool] = []  # not empty while `fork` forks


def install(folder: str, services: Mapping[str, str]) -> None:
    """Refuse what the docstring of this module lists, for the rest of this process.

    ``folder``: the temporary folder of the proof. ``services``: the address of each service that the pattern names.
    """
    root = os.path.realpath(folder)
    sockets = {services[name] for name in ("redis", "celery") if name in services}
    _replace_psycopg(services.get("postgresql"))

    def hook(name: str, args: tuple[Any, ...]) -> None:
        if name == "socket.connect" and isinstance(args[1], str) and args[1] in sockets:
            return
        if name in _REFUSED and not (name == "os.fork" and _forking):
            raise PermissionError(f"a proof may not use {name}")
        if name in _CHANGES:
            _check_change(root, name, args)
        elif name == "open":
            if (args[2] or 0) & _WRITING:
                _check_path(root, args[0], -1, False)
        elif name == "sqlite3.connect":
            if (database := _database(os.fsdecode(args[0]))) not in ("", ":memory:"):
                _check_path(root, database, -1, False)
        elif name in ("os.kill", "os.killpg") and args[0] != os.getpid():
            raise PermissionError(f"a proof may not use {name}")

    for module, function in _REPLACED:
        if hasattr(sys.modules.get(module), function):
            setattr(sys.modules[module], function, _refusal(f"{module}.{function}"))
    import socket  # only processes that execute need it

    setattr(socket.socket, "listen", _refusal("socket.listen"))  # noqa: B010  # without `bind` it takes any port
    sys.addaudithook(hook)  # cannot be removed, so only in a process that ends after one request


def fork() -> int:
    """Fork this process in spite of the guard; see `os.fork`. SIGTERM ends the child at once.

    SIGTERM waits meanwhile, because functions that run after a fork lose the exception of its handler.

    Raises:
        NotImplementedError: this system has no fork.
    """
    if sys.platform == "win32" or _fork is None:
        raise NotImplementedError("os.fork")
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    _forking.append(True)
    try:
        if not (pid := _fork()):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        return pid
    finally:
        _forking.clear()
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _replace_psycopg(folder: str | None) -> None:
    """Refuse connections to PostgreSQL except to the socket in ``folder``. There is no audit event for them."""
    if folder is None:
        sys.modules["psycopg"] = None  # type: ignore[assignment]  # importing it raises ImportError
        return
    from psycopg import generators
    from psycopg.conninfo import conninfo_to_dict

    connect = generators.connect

    def checked(conninfo: str, *args: Any, **options: Any) -> Any:
        if conninfo_to_dict(conninfo).get("host") != folder:
            raise PermissionError("a proof may only connect to the PostgreSQL server of the stage")
        return connect(conninfo, *args, **options)

    generators.connect = checked


def _refusal(name: str) -> Callable[..., None]:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(f"a proof may not use {name}")

    return refuse


def _database(name: str) -> str:
    """Return the path of the SQLite database ``name``, which may be a URI (https://www.sqlite.org/uri.html)."""
    if not name.startswith("file:"):
        return name
    path = urllib.parse.unquote(name.removeprefix("file:").partition("?")[0].partition("#")[0])
    return "/" + path[2:].partition("/")[2] if path.startswith("//") else path


def _check_change(root: str, name: str, args: tuple[Any, ...]) -> None:
    """Refuse the change of the audit event ``name`` outside ``root``."""
    for at, start in _CHANGES[name]:
        if isinstance(args[at], int) and name != "os.truncate":  # which needs a descriptor opened for writing
            _check_descriptor(root, args[at])
        _check_path(root, args[at], -1 if start is None else args[start], name in _NAMES)


def _check_descriptor(root: str, descriptor: int) -> None:
    """Refuse a change of the file of ``descriptor``, which can be open for reading, outside ``root``."""
    link = f"/proc/self/fd/{descriptor}"
    if os.path.lexists(link) and os.path.exists(file := os.readlink(link)) and not file.startswith(root + os.sep):
        raise PermissionError(f"a proof may not write {file}")


def _check_path(root: str, path: Any, start: int, is_name: bool) -> None:
    """Refuse a change of ``path`` outside ``root``.

    ``start``: the descriptor of the folder that a relative path starts from, or -1. ``is_name``: a folder entry is
    changed, so a link at the end of the path is not followed.
    """
    if path is None or isinstance(path, int):  # a descriptor, checked when its file was opened
        return
    text = os.fsdecode(path)
    if start != -1 and not os.path.isabs(text):
        text = os.path.join(os.path.realpath(f"/proc/self/fd/{start}"), text)  # outside `root` where there is no /proc
    head, tail = os.path.split(text.rstrip(os.sep) or os.sep)
    real = os.path.join(os.path.realpath(head), tail) if is_name else os.path.realpath(text)
    if text != os.devnull and not real.startswith(root + os.sep):
        raise PermissionError(f"a proof may not write {text}")
