"""Runs a transcript on a server: a runtime in this process, or any command that speaks MCP over stdio."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from tmkb.conformance import match, transcript
from tmkb.conformance.transcript import Transcript
from tmkb.engine import message
from tmkb.engine.effects import Send
from tmkb.runtime import Runtime, Sent
from tmkb.transport import framing
from tmkb.values import JsonValue

TIMEOUT = 30.0  # seconds that a server may take for an exchange, or to end


class Target(Protocol):
    """A server with one client. Whether what it sends is `ordered`: on several streams it is not."""

    ordered: bool

    def exchange(self, line: bytes, expected: int) -> list[JsonValue]:
        """Send one line; everything that came back, of which ``expected`` messages are waited for."""

    def close(self) -> list[JsonValue]:
        """End the connection; everything that still came."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came back in one exchange of a transcript, and how that differs from what was expected."""

    number: int  # from 1; one more than there are exchanges stands for what came after the last
    about: str
    actual: list[JsonValue]
    differences: list[str]


def replay(replayed: Transcript, revision: str, target: Target) -> Iterator[Replayed]:
    """Run ``replayed`` under ``revision`` on ``target``, which is closed afterwards; one result for each exchange."""
    try:
        for exchange in replayed.opening(revision):
            target.exchange(exchange.line, len(exchange.expect))
        for number, exchange in enumerate(replayed.exchanges(revision), 1):
            actual = target.exchange(exchange.line, len(exchange.expect))
            if not target.ordered:
                actual = match.arranged(exchange.expect, actual)
            found = list(match.differences([*exchange.expect], [*actual]))
            yield Replayed(number, exchange.about, actual, found)
    finally:
        late = target.close()
    if late:
        yield Replayed(
            number + 1, "After the end of input", late, [f"not expected: {message.compact(m)}" for m in late]
        )


class InProcess:
    """A connection to a runtime in this process: no pipes, no framing."""

    ordered = True

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.connection = runtime.connect()

    def exchange(self, line: bytes, expected: int) -> list[JsonValue]:
        """What the runtime answers, and what its operations say until they wait or ``expected`` messages are there."""
        sent = _messages(self.runtime.handle(self.connection, line))
        while (wait := self._wait()) is not None and (wait == 0 or len(sent) < expected):
            time.sleep(wait)
            sent += _messages(self.runtime.work())
        return sent

    def close(self) -> list[JsonValue]:
        """The end of the input; what is still said."""
        sent = _messages(self.runtime.end(self.connection))
        while (wait := self._wait()) is not None:
            time.sleep(wait)
            sent += _messages(self.runtime.work())
        self.runtime.abandon(self.connection)
        return sent

    def _wait(self) -> float | None:
        """Seconds until an operation goes on; None where none does so soon."""
        due = self.runtime.due()
        return due if due is not None and due < TIMEOUT else None


def _messages(sent: Iterable[Sent]) -> list[JsonValue]:
    return [json.loads(each.message) for each in sent if isinstance(each, Send)]


class Command:
    """A connection to a process over its standard input and output.

    Silence cannot be seen, so that a harmless request follows each line (``openings/barrier.yaml``): what comes before
    its response belongs to the line.
    """

    ordered = True

    def __init__(self, argv: Sequence[str]) -> None:
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        (barrier,) = transcript.shared("barrier", "")
        self.barrier, self.barrier_id = framing.line(barrier.line), json.loads(barrier.line)["id"]
        threading.Thread(target=self._read, daemon=True).start()

    def exchange(self, line: bytes, expected: int) -> list[JsonValue]:
        """What comes until the barrier has been answered and ``expected`` messages are there, or time is up."""
        self._write(framing.line(line) + self.barrier)
        messages: list[JsonValue] = []
        passed = False
        while not passed or len(messages) < expected:
            received = self._next()
            if received is None:
                break
            if isinstance(received, dict) and received.get("id") == self.barrier_id:
                passed = True
            else:
                messages.append(received)
        return messages

    def close(self) -> list[JsonValue]:
        """Close its input and wait for its end."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it had ended before
            self.process.stdin.close()
        messages: list[JsonValue] = list(iter(self._next, None))
        try:
            self.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return messages

    def _write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # what is missing then is told as a difference
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self.lines.put(line)
        self.lines.put(None)

    def _next(self) -> JsonValue:
        """The next message, or a line that is no JSON as a string; None at the end of the output or of patience."""
        try:
            line = self.lines.get(timeout=TIMEOUT)
        except queue.Empty:
            return None
        if line is None:
            self.lines.put(None)
            return None
        try:
            value: JsonValue = json.loads(line)
        except ValueError:
            return line.decode("utf-8", "replace").rstrip("\n")
        return value
