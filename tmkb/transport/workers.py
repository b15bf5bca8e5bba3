"""Several processes that serve one socket.

`docs/decisions/0012-own-worker-supervisor.md` explains why the supervisor is not uvicorn's.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from collections.abc import Callable

assert sys.platform != "win32"

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1  # of prctl.h
_MIN_LIFETIME = 1.0  # seconds; a worker that ends sooner is not restarted


def run(count: int, work: Callable[[int], None]) -> int:
    """Run ``work`` in ``count`` child processes until a signal, which they get too; replace each one that ends before.

    ``work`` receives the number of the process. A replacement gets a new number.

    Returns:
        The exit status: 1 if a worker ended right after its start, else 0.
    """
    started: dict[int, float] = {}  # process id → time
    ending = failed = False
    numbers = itertools.count(1)

    def stop(number: int, _: object) -> None:
        nonlocal ending
        ending = True
        for pid in started:
            os.kill(pid, number)

    def start() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # or the child could lose one to the handler above
        started[_start(work, next(numbers))] = time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    for number in _SIGNALS:
        signal.signal(number, stop)
    for _ in range(count):
        if not ending:
            start()
    while started:
        pid, _status = os.wait()
        lifetime = time.monotonic() - started.pop(pid)
        if ending:
            continue
        if lifetime < _MIN_LIFETIME:
            failed = True
            stop(signal.SIGTERM, None)
        else:
            start()
    return 1 if failed else 0


def end_with_parent() -> None:
    """Let the system send SIGTERM to this process when its parent is killed (Linux: prctl(2))."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _start(work: Callable[[int], None], number: int) -> int:
    if pid := os.fork():
        return pid
    status = 1
    try:
        for caught in _SIGNALS:
            signal.signal(caught, signal.SIG_DFL)
        end_with_parent()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        work(number)
        status = 0
    finally:
        os._exit(status)  # skips the cleanup that belongs to the parent
