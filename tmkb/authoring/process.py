"""Run a module of this package in a process that answers JSON requests.

A request is a line of JSON. The answer to it is some lines, and then an empty one.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from tmkb.schema import paths

DIED = {"status": "error", "detail": "the process died"}


class Process:
    """A process that runs a module of this package."""

    def __init__(self, *command: str, folder: str | None = None) -> None:
        """``command``: the module and its arguments. ``folder``: where it runs; by default the current one."""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", *command],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(_import_path())},
            **_OWN_GROUP,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def answers(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Send ``request``, and yield its answers, of which the caller must read all. `DIED` is the last if it ends."""
        with contextlib.suppress(OSError):  # it has ended: EPIPE, and EINVAL on Windows
            self._input.write(json.dumps(request) + "\n")
            self._input.flush()
        for line in iter(self._output.readline, "\n"):
            if not line.endswith("\n"):  # the end, perhaps in the middle of a line
                self._process.wait()
                yield DIED
                return
            yield json.loads(line)

    def terminate(self) -> None:
        """Stop the process and those that it has forked, unless they have a process group of their own."""
        if sys.platform == "win32":
            self._process.terminate()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):
            self._input.close()
        self._output.close()
        self._process.wait()


_OWN_GROUP: Any = {} if sys.platform == "win32" else {"process_group": 0}  # Ctrl-C only reaches this process


def _import_path() -> list[str]:
    """Return the absolute import path of this process without the current folder.

    The current folder may contain a module with the name of a library. It stays if tmkb itself is imported from there.
    """
    here, ours = paths.current(), os.path.abspath(os.path.join(paths.PROOF, "..", "..", ".."))
    folders = [paths.absolute(folder) for folder in sys.path if folder]
    return [each for each in folders if os.path.isabs(each) and (each != here or each == ours)]
