"""Relay the standard streams of a server unchanged, and hand a copy of its messages to a journal.

Each chunk is handed over before it is forwarded. So everything that a peer has received is recorded, even if the relay
is killed immediately afterwards. This module imports little, because a client waits for its start.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

from tmkb.conformance import journal
from tmkb.conformance.journal import Journal

_CHUNK = 1 << 16
_FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2")
_OF_TERMINAL = ("SIGINT", "SIGHUP")
_GRACE = 5.0  # seconds to read what a server wrote before its end; a child of it may hold its output open


def stdio(command: Sequence[str], output: Journal) -> int:
    """Run ``command`` between this process's stdin and stdout until it ends; return its exit status as shells do.

    Raises:
        OSError: if the command cannot be started.
    """
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdin is not None and process.stdout is not None
    for name in _FORWARDED:
        if (number := getattr(signal, name, None)) is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: _forward(process, number))
    to_server, from_server = os.dup(process.stdin.fileno()), os.dup(process.stdout.fileno())
    process.stdin.close()
    process.stdout.close()
    client = threading.Thread(target=_relay, args=(0, to_server, output, journal.CLIENT), daemon=True)
    server = threading.Thread(target=_relay, args=(from_server, 1, output, journal.SERVER), daemon=True)
    client.start()
    server.start()
    status = process.wait()
    server.join(_GRACE)
    return status if status >= 0 else 128 - status


def _relay(source: int, target: int, output: Journal, kind: int) -> None:
    """Copy bytes until either side ends; then close both, so that the other side notices."""
    put, read, write = output.put, os.read, os.write
    with contextlib.suppress(OSError):  # the target has closed its end
        while data := read(source, _CHUNK):
            put(0, kind, data)
            while data:
                data = data[write(target, data) :]
    for descriptor in (target, source):
        _close(descriptor)


def _close(descriptor: int) -> None:
    """Close a descriptor; a standard stream becomes the null device, so that no file takes its number."""
    if descriptor > 2:
        os.close(descriptor)
        return
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, descriptor)
    os.close(null)


def _forward(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to the server, unless a terminal has sent it to both."""
    if signal.Signals(number).name in _OF_TERMINAL and _is_foreground():
        return
    with contextlib.suppress(OSError):
        process.send_signal(number)


def _is_foreground() -> bool:
    if sys.platform == "win32":
        return False
    try:
        return os.tcgetpgrp(2) == os.getpgrp()
    except OSError:
        return False
