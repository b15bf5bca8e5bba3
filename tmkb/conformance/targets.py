"""Connections to servers for replays: a runtime in this process, or a command that speaks MCP over stdio."""

from __future__ import annotations

import contextlib
import json
import queue
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tmkb.conformance import transcript
from tmkb.conformance.process import Process
from tmkb.protocol.effects import Send, Sent
from tmkb.schema.values import JsonObject, JsonValue
from tmkb.transport import framing

if TYPE_CHECKING:
    from tmkb.transport.engine import Engine


TIMEOUT = 30.0  # default, in seconds: for one turn, and for the end of a server
LATE = 5.0  # seconds for a response after an unexpected request of the server
_PING_TIMEOUT = 5.0  # seconds for the response to the first ping
_QUIET = 0.5  # seconds without a message after which a turn ends, if the server does not support ping


class Target(Protocol):
    """A connection to a server.

    `ordered`: whether messages arrive in the order in which the server sent them. With several streams they may not.
    `timeout`: seconds for one exchange. `on_receive`: called with each message as soon as it arrives.
    `counts`: returns whether a message is one of those that an exchange waits for; it is asked over HTTP only.
    `ended`: whether the server has ended the connection.
    """

    ordered: bool
    timeout: float
    ended: bool = False
    on_receive: Callable[[JsonValue], None] = staticmethod(lambda _: None)
    counts: Callable[[JsonValue], bool] = staticmethod(lambda _: True)

    def exchange(
        self, line: bytes, count: int, pending: str | int | None = None, silence: bool = True
    ) -> list[JsonValue]:
        """Send one line and return the messages that follow.

        Wait for ``count`` messages. With ``pending``, wait for the response to the request with this id, or for a
        request of the server; if ``count`` is not 0, the response may still follow for a short time. With ``silence``,
        then make sure that no further message belongs to the line.
        """

    def learn(self, tools: Iterable[JsonObject]) -> None:
        """Note the tools of the server: over HTTP, their schemas mark arguments that headers repeat."""
        del tools

    def is_general(self, message: JsonValue) -> bool:
        """Return whether a message arrived on a stream that belongs to no request, which only HTTP has."""
        del message
        return False

    def report(self) -> list[str]:
        """Return the faults of the connection since the last call, as sentences."""
        return []

    def close(self) -> list[JsonValue]:
        """End the connection; return the messages that still arrived."""

    def notes(self) -> list[str]:
        """Return details for a failure report, such as the end of stderr. Call it after `close`."""
        return []


def is_settled(messages: Iterable[JsonValue], request: str | int) -> bool:
    """Return whether ``messages`` contain the response to ``request``, or a request of the server."""
    return any(
        answers(each, request) or (isinstance(each, dict) and {"id", "method"} <= each.keys()) for each in messages
    )


def answers(value: JsonValue, request: str | int | None) -> bool:
    """Return whether ``value`` is the response to ``request``."""
    if request is None or not isinstance(value, dict) or "method" in value:
        return False
    return type(value.get("id")) is type(request) and value["id"] == request


def flat(received: Iterable[JsonValue]) -> list[Any]:
    """Return messages with those of batches in place of the batches."""
    return [each for message in received for each in (message if isinstance(message, list) else [message])]


def is_incomplete(messages: Sequence[JsonValue], count: int, pending: str | int | None) -> bool:
    """Return whether a target has to wait for more messages; see `Target.exchange`."""
    return not is_settled(messages, pending) if pending is not None else len(messages) < count


class InProcess(Target):
    """A connection to a runtime in this process. Its faults raise exceptions."""

    ordered = True

    def __init__(self, runtime: Engine, timeout: float = TIMEOUT) -> None:
        """``timeout``: seconds. `exchange` does not wait for operations that pause for longer."""
        self.runtime = runtime
        self.timeout = timeout
        self.connection = runtime.connect()

    def exchange(
        self, line: bytes, count: int, pending: str | int | None = None, silence: bool = True
    ) -> list[JsonValue]:
        """Handle one line, and run operations until they all wait and no message is missing."""
        sent = self._messages(self.runtime.handle(self.connection, line))
        while (wait := self._next_step()) is not None and (wait == 0 or is_incomplete(sent, count, pending)):
            time.sleep(wait)
            sent += self._messages(self.runtime.work())
        return sent

    def close(self) -> list[JsonValue]:
        """End the input and return the messages that still arrived."""
        sent = self._messages(self.runtime.end(self.connection))
        while (wait := self._next_step()) is not None:
            time.sleep(wait)
            sent += self._messages(self.runtime.work())
        self.runtime.abandon(self.connection)
        return sent

    def _next_step(self) -> float | None:
        """Return the seconds until an operation resumes, or None if that is not within the timeout."""
        due = self.runtime.due()
        return due if due is not None and due < self.timeout else None

    def _messages(self, sent: Iterable[Sent]) -> list[JsonValue]:
        messages: list[JsonValue] = [json.loads(each.message) for each in sent if isinstance(each, Send)]
        for each in messages:
            self.on_receive(each)
        return messages


class Command(Target):
    """A connection to a process over its standard input and output.

    To observe silence, the target sends a ping (``openings/barrier.yaml``). Messages before the response to it belong
    to the turn. If the server does not support ping, the turn ends after a period without messages.
    """

    ordered = True

    def __init__(
        self,
        argv: Sequence[str],
        timeout: float = TIMEOUT,
        quiet: float | None = None,
        pings: bool | None = None,
        **start: Any,
    ) -> None:
        """Start the command.

        Args:
            timeout: seconds for one turn, and for the end of the process.
            quiet: seconds without a message that end a turn, instead of a ping.
            pings: whether the server answers pings; None if that is not known.
            start: further arguments of `subprocess.Popen`, such as ``cwd`` and ``env``.

        Raises:
            OSError: if the command cannot be started.
        """
        self.timeout, self.quiet = timeout, quiet
        self.pings = False if quiet is not None else pings
        self.process = Process(argv, **start)
        (barrier,) = transcript.packaged_opening("barrier", "")
        self.barrier, self.barrier_id = framing.line(barrier.line), barrier.request
        self.unanswered = 0  # pings
        self.responsive = self.killed = self.ended = False
        self.faults: list[str] = []

    def exchange(
        self, line: bytes, count: int, pending: str | int | None = None, silence: bool = True
    ) -> list[JsonValue]:
        """Send one line; return the messages that follow, until no more belong to it or the timeout ends."""
        self.process.write(framing.line(line))
        messages: list[JsonValue] = []
        deadline = time.monotonic() + self.timeout
        try:
            while is_incomplete(messages, count, pending):
                self._take(messages, deadline)
            if silence:
                self._receive_rest(messages, deadline)
            elif pending is not None:
                self._receive_late(messages, count, pending)
        except queue.Empty:
            self.faults.append(f"The server took longer than {self.timeout:g} s.")
        except EOFError:
            if not self.ended:
                self.faults.append("The server closed its output.")
            self.ended = True
        return messages

    def report(self) -> list[str]:
        """Return the faults since the last call: a timeout, or an early end."""
        faults, self.faults = self.faults, []
        return faults

    def close(self) -> list[JsonValue]:
        """Close the input and wait for the end of the process; return the messages that still arrived."""
        self.process.close_input()
        messages: list[JsonValue] = []
        deadline = time.monotonic() + self.timeout
        try:
            while True:
                self._take(messages, deadline)
        except (queue.Empty, EOFError):
            pass
        self.killed = self.process.end(deadline - time.monotonic())
        return messages

    def notes(self) -> list[str]:
        """Return how the process ended and the last lines of its stderr; call it after `close`."""
        end = "was killed: it did not end with its input" if self.killed else f"exit status {self.process.status}"
        mute = [] if self.pings is not False or self.quiet is not None else [_NO_PING]
        return [f"The server: {end}", *mute, *(f"stderr: {line}" for line in [*self.process.stderr])]

    def _receive_rest(self, messages: list[JsonValue], deadline: float) -> None:
        """Add the rest of the messages of a turn. Raises EOFError, and queue.Empty at ``deadline``."""
        if self.pings is not False:
            self.process.write(self.barrier)
            self.unanswered += 1
            # A server without a response yet may still be starting; one that has answered a ping may be busy.
            ping_deadline = (
                deadline if self.pings or not self.responsive else min(deadline, time.monotonic() + _PING_TIMEOUT)
            )
            try:
                while self.unanswered:
                    self._take(messages, ping_deadline)
                self.pings = True
                return
            except queue.Empty:
                if self.pings:
                    raise
                self.pings = False
                return
        with contextlib.suppress(queue.Empty):
            while time.monotonic() < deadline:
                self._take(messages, time.monotonic() + (_QUIET if self.quiet is None else self.quiet))

    def _receive_late(self, messages: list[JsonValue], count: int, pending: str | int) -> None:
        """Add the response after a request of the server, and messages of other threads. Raises EOFError."""
        with contextlib.suppress(queue.Empty):
            deadline = time.monotonic() + LATE
            while count and not any(answers(each, pending) for each in messages):
                self._take(messages, deadline)
            deadline = time.monotonic() + _QUIET
            while len(messages) < count:
                self._take(messages, deadline)

    def _take(self, messages: list[JsonValue], deadline: float) -> None:
        """Add the next message; a line that is not JSON becomes a string. Raises EOFError or queue.Empty."""
        line = self.process.line(deadline - time.monotonic())
        self.responsive = True
        try:
            value: JsonValue = json.loads(line)
        except (ValueError, RecursionError):
            value = line.decode("utf-8", "replace").rstrip("\n")
        if self.unanswered and isinstance(value, dict) and value.get("id") == self.barrier_id and "method" not in value:
            self.unanswered -= 1
        else:
            messages.append(value)
            self.on_receive(value)


_NO_PING = f"The server does not answer ping, so {_QUIET:g} s without a message count as silence (--quiet SECONDS)."
