"""Who asked for what, and what came of it: one line of JSON for each, in a file that only its owner reads.

The file is opened for each line, so it may be moved away at any time. It is never followed through a link.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress

from tmkb.sysmcp import times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType
    from typing import Any

    from tmkb.schema.values import JsonObject, JsonValue

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class Audit:
    """The lines in the file ``path``; none are written where that is None."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.lost = 0  # lines that could not be written; the next that can tells how many

    def call(self, tool: str, arguments: JsonObject) -> Call:
        """A call has begun: to be used with ``with``, which records how it ended."""
        return Call(self, tool, arguments)

    def recorded(self, tool: str, run: Callable[..., Generator[Any, Any, Any]]) -> Callable[..., Any]:
        """``run``, of whose each call it is recorded how it ended, as a call of ``tool``."""

        def recorded(**arguments: JsonValue) -> Generator[Any, Any, Any]:
            with self.call(tool, arguments):
                return (yield from run(**arguments))

        return recorded

    def record(self, line: JsonObject, durable: bool = False) -> None:
        """Write a line, down to the disk where it is to be durable. Raises OSError."""
        if self.path is None:
            return
        try:
            _append(self.path, json.dumps({**line, "lost": self.lost} if self.lost else line), durable, self.lost > 0)
        except OSError:
            self.lost += 1
            raise
        self.lost = 0


class Call:
    """One call of a tool; its lines have the same ``ref``. ``durable``: its end is written down to the disk."""

    def __init__(self, audit: Audit, tool: str, arguments: JsonObject) -> None:
        self.audit = audit
        self.said: JsonObject = {"tool": tool, "args": arguments, "ref": os.urandom(6).hex()}
        self.durable = False

    def __enter__(self) -> Call:
        self.began = time.monotonic()
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        """Record how it ended; where that is not possible, it has happened all the same."""
        with suppress(OSError):
            self._record(_outcome(error))

    def intend(self) -> None:
        """Say that something is about to change. Raises OSError: then it must not."""
        self.durable = True
        self._record("intent")

    def _record(self, outcome: str) -> None:
        took = round(1000 * (time.monotonic() - self.began), 3)
        self.audit.record({"ts": times.iso(time.time()), **self.said, "outcome": outcome, "ms": took}, self.durable)


def _outcome(error: BaseException | None) -> str:
    """``ok``, the id of what the client is told, or that it was stopped or broke down."""
    if error is None:
        return "ok"
    if isinstance(error, GeneratorExit):
        return "cancelled"
    told = getattr(error, "error", None)  # of a ToolError
    return told if isinstance(told, str) else "failed"


def _append(path: str, line: str, durable: bool, after_loss: bool) -> None:
    """In one write, so that lines of several processes do not mix; after a loss below what may be half a line."""
    written = f"{line}\n".encode()
    descriptor = os.open(path, _FLAGS | _SAFE, 0o600)
    try:
        if os.write(descriptor, b"\n" + written if after_loss else written) < len(written):
            raise OSError(path)
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
