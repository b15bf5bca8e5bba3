"""Run work in forked child processes, which share what this process has loaded. Windows cannot fork."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

assert sys.platform != "win32"


_SECONDS = 1.0  # for a child to end
_POLL = 0.005  # seconds between looks at a child that ends
END = signal.SIGUSR1  # which neither terminals nor service managers send


def start(work: Callable[[], None], inlet: int, end: Callable[[], None]) -> int:
    """Run ``work`` in a child process and return its id. The child inherits only the descriptor ``inlet``.

    At the signal `END` the child calls ``end`` and leaves ``work`` with SystemExit.
    """

    def leave(*_: object) -> None:
        end()
        sys.exit()

    if child := os.fork():
        return child
    try:
        for number in (signal.SIGINT, signal.SIGTERM):  # sent to both processes by terminals and service managers
            signal.signal(number, signal.SIG_IGN)
        signal.signal(END, leave)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        os.closerange(3, inlet)
        os.closerange(inlet + 1, inlet + 256)
        work()
    finally:
        os._exit(0)


def stop(child: int) -> None:
    """End a child of `start`, after a second by force."""
    os.kill(child, END)
    deadline = time.monotonic() + _SECONDS
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return
        time.sleep(_POLL)


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
