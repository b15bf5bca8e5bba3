"""Run queued jobs in a real Celery worker: a process of its own that receives them through Redis.

The process is forked when the version of the code is mounted, and serves all its cases. Messages stay in the queue of
the application until a step says that the worker runs them; then they are moved to the queue that it consumes.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from celery import Celery
from celery.signals import task_postrun, task_prerun
from celery.states import READY_STATES

from tmkb.authoring.proofs import guard

_WAITING, _CONSUMED = "celery", "consumed"  # queues: Celery's default, and the worker's
_SECONDS = 10.0  # until a job must have ended


def broker(address: str, number: int) -> str:
    """Return the URL of the database ``number`` of the Redis server whose socket is ``address``."""
    return f"redis+socket://{address}?virtual_host={number}"


class Worker:
    """A Celery worker in a forked process. Requires `os.fork`."""

    def __init__(self, celery: Celery, begin: Callable[[], object], end: Callable[[], object]) -> None:
        """``begin`` and ``end`` are called in the process before and after each job."""
        self._celery = celery
        ended, self._alive = os.pipe()
        self._pid = guard.fork()
        if not self._pid:
            try:
                os.close(self._alive)
                threading.Thread(target=lambda: (os.read(ended, 1), os._exit(0)), daemon=True).start()
                _serve(celery, begin, end)
            finally:
                os._exit(1)
        os.close(ended)

    def close(self) -> None:
        """End the process."""
        os.close(self._alive)
        os.waitpid(self._pid, 0)

    def results(self, client: Any) -> list[Any]:
        """Let the worker run the queued jobs, and return their results or exceptions.

        ``client``: of redis-py, for the database of the broker.

        Raises:
            TimeoutError: a job has not ended in time.
        """
        results = []
        while message := client.lmove(_WAITING, _CONSUMED, "RIGHT", "LEFT"):
            results.append(self._result(json.loads(message)["headers"]["id"]))
        return results

    def _result(self, id_: str) -> Any:
        deadline = time.monotonic() + _SECONDS
        while (meta := self._celery.backend.get_task_meta(id_, cache=False))["status"] not in READY_STATES:
            if time.monotonic() > deadline:
                raise TimeoutError("the Celery worker has not run a job")
            time.sleep(0.002)
        return meta["result"]


def _serve(celery: Celery, begin: Callable[[], object], end: Callable[[], object]) -> None:
    """Run a worker in this process until it ends."""
    task_prerun.connect(lambda **_: begin(), weak=False)
    task_postrun.connect(lambda **_: end(), weak=False)
    quiet = {"without_mingle": True, "without_gossip": True, "without_heartbeat": True, "loglevel": "CRITICAL"}
    celery.Worker(pool="solo", queues=[_CONSUMED], **quiet).start()
