"""Several processes that serve one socket. They share it, and nothing else."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

_SHORTEST = 1.0  # seconds; a process that ends sooner will not do better the next time


def run(count: int, work: Callable[[], None]) -> int:
    """Run ``work`` in ``count`` child processes until a signal comes; one that breaks down is replaced. Gives the
    status to exit with."""
    children: dict[int, float] = {}  # process id → when it began
    ending = False

    def end(number: int, _: object) -> None:
        nonlocal ending
        ending = True
        for child in children:
            os.kill(child, signal.SIGTERM)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    for _ in range(count):
        children[_start(work)] = time.monotonic()
    failed = False
    while children:
        child, _status = os.wait()
        lived = time.monotonic() - children.pop(child)
        failed = failed or (not ending and lived < _SHORTEST)
        if failed and not ending:
            end(signal.SIGTERM, None)
        if not ending:
            children[_start(work)] = time.monotonic()
    return 1 if failed else 0


def _start(work: Callable[[], None]) -> int:
    if child := os.fork():
        return child
    status = 1
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        work()
        status = 0
    finally:
        os._exit(status)  # without the ends of the process that it is a copy of
