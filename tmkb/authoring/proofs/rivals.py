"""Run a rival's steps in the middle of a request: in a thread on SQLite, in a process of its own on PostgreSQL.

The process is forked before the request begins, as a second worker of a server is. It has connections of its own, and
a lock inside the application's process does not stop it. Row locks do: then the request continues, and the rival ends
later.
"""

from __future__ import annotations

import json
import os
import select
import threading
from collections.abc import Callable
from typing import Any

from tmkb.authoring.play import Rival
from tmkb.authoring.proofs import guard

_SECONDS = 0.005  # between two looks at a rival that neither ends nor waits


class InThread:
    """A rival in a thread of this process. Its results stay in this process."""

    def __init__(self, rival: Rival) -> None:
        self._thread = threading.Thread(target=rival)
        self.started = False

    def start(self) -> None:
        """Run the rival to its end."""
        self.started = True
        self._thread.start()
        self._thread.join()

    def result(self) -> None:
        """Return None: the rival has ended."""


class InProcess:
    """A rival in a forked process. Requires `os.fork`."""

    def __init__(self, rival: Rival, begin: Callable[[], object], is_blocked: Callable[[], bool]) -> None:
        """``begin``: called first in the process. ``is_blocked``: whether the rival waits for a lock."""
        self._is_blocked = is_blocked
        self.started = False
        wait, self._go = os.pipe()
        self._results, results = os.pipe()
        self._pid = guard.fork()
        if not self._pid:
            try:
                os.close(self._go)
                if os.read(wait, 1):
                    begin()
                    with open(results, "w", encoding="utf-8") as file:
                        json.dump(rival(), file)
            finally:
                os._exit(0)
        os.close(wait)
        os.close(results)

    def start(self) -> None:
        """Let the rival run until it ends or waits for a lock."""
        self.started = True
        os.write(self._go, b"\n")
        while not select.select([self._results], [], [], _SECONDS)[0] and not self._is_blocked():
            pass

    def result(self) -> dict[str, Any] | None:
        """Wait for the end of the rival, and return what it returned; None if it was not started or died."""
        os.close(self._go)
        with open(self._results, encoding="utf-8") as file:
            text = file.read()
        os.waitpid(self._pid, 0)
        return dict(json.loads(text)) if text else None
