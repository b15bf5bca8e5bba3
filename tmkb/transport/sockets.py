"""Listening sockets: TCP addresses and Unix domain sockets."""

from __future__ import annotations

import os
import socket
import stat

from tmkb.errors import Problem, SpecError
from tmkb.transport.guard import is_loopback

_BACKLOG = 1024  # connections that wait to be accepted


def bind(
    http: str | None, uds: str | None = None, remote: bool = False, option: str = "--http", path: str = "/mcp"
) -> tuple[socket.socket, str]:
    """Return a listening socket and its URL for the log. Raises SpecError.

    Args:
        http: HOST:PORT.
        uds: the path of a Unix domain socket instead.
        remote: whether an address that is not loopback is allowed.
        option: where ``http`` comes from.
        path: of the URL.
    """
    try:
        if uds:
            return _unix(uds), f"{uds}:{path}"
        host, port = _address(http or "", option)
        if not is_loopback(host) and not remote:
            raise SpecError([Problem.of_argument("remote_not_allowed", option, host=host)])
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        where = uds or http or ""
        reason = os.strerror(error.errno) if error.errno else error.strerror or str(error)
        raise SpecError([Problem.of_argument("cannot_listen", where, reason=reason)]) from error
    shown = f"[{host}]" if ":" in host else host
    return bound, f"http://{shown}:{bound.getsockname()[1]}{path}"


def adopt(descriptor: int) -> socket.socket:
    """Return a listening socket that this process has inherited."""
    return socket.socket(fileno=descriptor)


def _address(text: str, option: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise SpecError([Problem.of_argument("bad_address", option, text=text)])
    return host.removeprefix("[").removesuffix("]"), int(port)


def _unix(path: str) -> socket.socket:
    """Listen on a socket at ``path`` that only its owner can use.

    A socket without a listener is replaced. Raises OSError if it has a listener, and SpecError if the file is not a
    socket or the system has no Unix domain sockets.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise SpecError([Problem("no_unix_sockets", "--uds")])
    try:
        occupied = not stat.S_ISSOCK(os.lstat(path).st_mode)
    except FileNotFoundError:
        pass
    else:
        if occupied:
            raise SpecError([Problem("not_a_socket", path)])
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
            else:
                raise OSError(None, "something is listening there already")
    bound = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        bound.bind(path)
    finally:
        os.umask(before)
    bound.listen(_BACKLOG)
    return bound
