"""The audit log: who called which tool, and the outcome. One line of JSON per call, in a file only its owner can read.

The file is opened for each line, so it can be rotated at any time. Links are not followed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any

from tmkb.providers.base import Provider
from tmkb.schema.values import JsonObject, JsonValue
from tmkb.sysmcp import times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.providers.operation import Operation, StepGenerator

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class Audit:
    """The audit log in the file ``path``; without a path nothing is written."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.lost = 0  # lines that could not be written; the next line reports the number

    def call(self, tool: str, arguments: JsonObject) -> Call:
        """Return a context manager that records the outcome of a call."""
        return Call(self, tool, arguments)

    def write(self, line: JsonObject, durable: bool = False) -> None:
        """Append a line; if it is ``durable``, flush it to the disk. Raises OSError."""
        if self.path is None:
            return
        try:
            _append(self.path, json.dumps({**line, "lost": self.lost} if self.lost else line), durable, self.lost > 0)
        except OSError:
            self.lost += 1
            raise
        self.lost = 0


class Call:
    """One call of a tool. All its lines have the same ``ref``; after `intend` they are flushed to the disk."""

    def __init__(self, audit: Audit, tool: str, arguments: JsonObject) -> None:
        self.audit = audit
        self.fields: JsonObject = {"tool": tool, "args": arguments, "ref": os.urandom(6).hex()}
        self.durable = False

    def __enter__(self) -> Call:
        self.start = time.monotonic()
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        """Record the outcome. An unwritable log does not change it."""
        with suppress(OSError):
            self._write(_outcome(error))

    def intend(self) -> None:
        """Record that a change follows. Raises OSError; then the caller must not make the change."""
        self.durable = True
        self._write("intent")

    def _write(self, outcome: str) -> None:
        took = round(1000 * (time.monotonic() - self.start), 3)
        line = {"ts": times.from_timestamp(time.time()), **self.fields, "outcome": outcome, "ms": took}
        self.audit.write(line, self.durable)


class AuditedProvider(Provider):
    """A provider whose calls are recorded in the file of the setting ``audit``."""

    def __init__(self, settings: Mapping[str, Any], part: Callable[[str], JsonObject]) -> None:
        super().__init__(settings, part)
        self.audit = Audit(settings.get("audit"))

    def operation(self, name: str, definition: Mapping[str, Any]) -> Operation:
        """Return the generator method ``name``, recorded as the tool in ``definition``."""
        run: Callable[..., StepGenerator] = getattr(self, name)

        def audited(**arguments: JsonValue) -> StepGenerator:
            with self.audit.call(definition["name"], arguments):
                return (yield from run(**arguments))

        return audited


def _outcome(error: BaseException | None) -> str:
    """Return ``ok``, the id of a ToolError, ``cancelled`` or ``failed``."""
    if error is None:
        return "ok"
    if isinstance(error, GeneratorExit):
        return "cancelled"
    error_id = getattr(error, "error", None)
    return error_id if isinstance(error_id, str) else "failed"


def _append(path: str, line: str, durable: bool, after_loss: bool) -> None:
    """Append with a single write, so that processes do not mix their lines. A lost line may be half written."""
    data = f"\n{line}\n".encode() if after_loss else f"{line}\n".encode()
    descriptor = os.open(path, _FLAGS | _SAFE, 0o600)
    try:
        if os.write(descriptor, data) < len(data):
            raise OSError(path)
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
