"""Find out whether a client runs: some overwrite their file when they end."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from tmkb.clients.client import Client

_PATIENCE = 10  # seconds for a list of processes
_LISTS = {"darwin": ["ps", "-axo", "comm="], "win32": ["tasklist", "/fo", "csv", "/nh"]}


def is_running(client: Client) -> bool:
    """Return whether a process of the client runs on this machine; False if that cannot be found out."""
    wanted = set(client.data.get("processes", []))
    return bool(wanted) and not wanted.isdisjoint(_names())


def _names() -> Iterator[str]:
    """Yield the names of all processes."""
    if sys.platform not in _LISTS:
        with contextlib.suppress(OSError):
            for process in filter(str.isdigit, os.listdir("/proc")):
                with (
                    contextlib.suppress(OSError),
                    open(f"/proc/{process}/comm", encoding="utf-8", errors="replace") as file,
                ):
                    yield file.read().strip()
        return
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        command = _LISTS[sys.platform]
        listed = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_PATIENCE, check=False
        )
        for line in listed.stdout.splitlines():
            yield line.split('","')[0].strip('"') if sys.platform == "win32" else os.path.basename(line.strip())
