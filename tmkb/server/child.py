"""Run work in forked child processes, which share what this process has loaded. Windows cannot fork."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

assert sys.platform != "win32"


def start(work: Callable[[], None], inlet: int) -> int:
    """Run ``work`` in a child process and return its id. The child inherits only the descriptor ``inlet``."""
    if child := os.fork():
        return child
    try:
        for number in (signal.SIGINT, signal.SIGTERM):  # sent to both processes by terminals and service managers
            signal.signal(number, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        os.closerange(3, inlet)
        os.closerange(inlet + 1, inlet + 256)
        work()
    finally:
        os._exit(0)


def result(work: Callable[[], bytes]) -> bytes | None:
    """Return the result of ``work`` from a child process; None if it failed. The child ends with this process."""
    outlet, inlet = os.pipe()
    watched, alive = os.pipe()
    if (child := os.fork()) == 0:
        status = 1
        try:
            os.close(alive)
            _exit_with_parent(watched)
            os.close(outlet)  # so that a write fails when the parent has ended
            with open(inlet, "wb") as pipe:
                pipe.write(work())
            status = 0
        finally:
            os._exit(status)  # without the exit handlers of the parent
    os.close(inlet)
    os.close(watched)
    with open(outlet, "rb") as pipe:
        data = pipe.read()
    ended = os.waitpid(child, 0)[1]
    os.close(alive)
    return data if ended == 0 else None


def _exit_with_parent(watched: int) -> None:
    """Exit when the parent closes the other end of the pipe ``watched``."""
    import threading

    def watch() -> None:
        os.read(watched, 1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
