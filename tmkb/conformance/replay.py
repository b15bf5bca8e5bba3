"""Replay a transcript against a server: a runtime in this process, or a command that speaks MCP over stdio."""

from __future__ import annotations

import collections
import contextlib
import json
import queue
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jsonschema

from tmkb.conformance import match, transcript
from tmkb.conformance.transcript import Transcript, Turn
from tmkb.protocol import messages as message
from tmkb.protocol.effects import Send
from tmkb.schema.values import JsonValue
from tmkb.server.runtime import Runtime, Sent
from tmkb.transport import framing

TIMEOUT = 30.0  # default, in seconds: for one turn, and for the end of a server
_PING_TIMEOUT = 5.0  # seconds for the response to the first ping
_QUIET = 0.5  # seconds without a message after which a turn ends, if the server does not support ping
_STDERR_LINES = 20
_STDERR_CHARACTERS = 500


class Target(Protocol):
    """A connection to a server.

    `ordered`: whether messages arrive in the order in which the server sent them. With several streams they may not.
    """

    ordered: bool

    def exchange(self, line: bytes, count: int, pending: str | int | None = None) -> list[JsonValue]:
        """Send one line and return all messages that follow.

        Wait for ``count`` messages. With ``pending``, wait for the response to the request with this id, or for a
        request of the server.
        """

    def report(self) -> list[str]:
        """Return the faults of the connection since the last call, as sentences."""
        return []

    def close(self) -> list[JsonValue]:
        """End the connection; return the messages that still arrived."""

    def notes(self) -> list[str]:
        """Return details for a failure report, such as the end of stderr. Call it after `close`."""
        return []


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one turn: the messages that arrived, and how they differ from the expected ones."""

    number: int  # from 1; 0 is the opening; the number after the last turn is the end of input
    about: str
    actual: list[JsonValue]
    differences: list[str]
    answered: bool = True  # False: the expected or pending response did not arrive


def replay(recording: Transcript, revision: str, target: Target, record: bool = False) -> Iterator[Result]:
    """Replay ``recording`` under ``revision`` on ``target`` and close it; yield a result for each turn.

    If the opening fails, its result is the only one. With ``record``, a turn without expectations waits for the
    response to its request, unless a later turn cancels the request or expects the response.
    """
    number, failed, late = 0, False, []
    try:
        for turn in recording.opening(revision):
            actual = target.exchange(turn.line, len(turn.expect))
            if faults := list(_opening_faults(turn, actual)):
                failed = True
                yield Result(0, "The opening failed", actual, [*faults, *target.report()], answered=False)
                return
        turns = recording.turns(revision)
        pending = _pending_requests(turns) if record else {}
        for number, turn in enumerate(turns, 1):
            id_ = pending.get(number)
            actual = target.exchange(turn.line, len(turn.expect), id_)
            if not target.ordered:
                actual = match.sort_like(turn.expect, actual)
            differences = list(match.differences([*turn.expect], [*actual]))
            request = turn.request if any(_answers(each, turn.request) for each in turn.expect) else id_
            answered = request is None or _is_settled(actual, request)
            yield Result(number, turn.about, actual, [*differences, *target.report()], answered)
    finally:
        late = target.close()
    if late and not failed:
        yield Result(number + 1, "After the end of input", late, [f"not expected: {message.compact(m)}" for m in late])


def _opening_faults(turn: Turn, actual: Sequence[JsonValue]) -> Iterator[str]:
    """Yield a sentence for each fault of the responses to a line of an opening. Other messages are ignored."""
    for each in actual:
        if not isinstance(each, dict) or each.get("jsonrpc") != "2.0":
            yield f"not a JSON-RPC message: {message.compact(each)[:200]}"
    if turn.request is None:
        return
    method = json.loads(turn.line)["method"]
    answers: list[Any] = [each for each in actual if _answers(each, turn.request)]
    if len(answers) != 1:
        yield f"{method}: expected one response, got {len(answers)}"
    for answer in answers:
        if "result" not in answer:
            yield f"{method}: expected a result, got {message.compact(answer)[:200]}"
        elif (schema := transcript.result_schema(method)) is not None:
            for error in jsonschema.Draft202012Validator(schema).iter_errors(answer["result"]):
                yield f"{method}: {'.'.join(['result', *map(str, error.absolute_path)])}: {error.message}"


def _pending_requests(turns: Sequence[Turn]) -> dict[int, str | int]:
    """Map the number of a turn to the id of the request whose response it waits for when recording."""
    pending: dict[int, str | int] = {}
    outstanding: str | int | None = None
    for number, turn in enumerate(turns, 1):
        later = turns[number:]
        if turn.request is not None:
            outstanding = None if any(_settles(each, turn.request) for each in later) else turn.request
        if outstanding is not None and not turn.expect and (turn.request or turn.is_response):
            pending[number] = outstanding
    return pending


def _settles(turn: Turn, request: str | int) -> bool:
    """Return whether ``turn`` expects the response to ``request``, or refers to its id as a cancellation does."""
    return turn.refers_to == request or any(_answers(each, request) for each in turn.expect)


def _is_settled(messages: Iterable[JsonValue], request: str | int) -> bool:
    """Return whether ``messages`` contain the response to ``request``, or a request of the server."""
    return any(
        _answers(each, request) or (isinstance(each, dict) and {"id", "method"} <= each.keys()) for each in messages
    )


def _answers(value: JsonValue, request: str | int | None) -> bool:
    """Return whether ``value`` is the response to ``request``."""
    if request is None or not isinstance(value, dict) or "method" in value:
        return False
    return type(value.get("id")) is type(request) and value["id"] == request


def is_incomplete(messages: Sequence[JsonValue], count: int, pending: str | int | None) -> bool:
    """Return whether a target has to wait for more messages; see `Target.exchange`."""
    return not _is_settled(messages, pending) if pending is not None else len(messages) < count


class InProcess(Target):
    """A connection to a runtime in this process. Its faults raise exceptions."""

    ordered = True

    def __init__(self, runtime: Runtime, timeout: float = TIMEOUT) -> None:
        """``timeout``: seconds. `exchange` does not wait for operations that pause for longer."""
        self.runtime = runtime
        self.timeout = timeout
        self.connection = runtime.connect()

    def exchange(self, line: bytes, count: int, pending: str | int | None = None) -> list[JsonValue]:
        """Handle one line, and run operations until they all wait and no message is missing."""
        sent = _messages(self.runtime.handle(self.connection, line))
        while (wait := self._next_step()) is not None and (wait == 0 or is_incomplete(sent, count, pending)):
            time.sleep(wait)
            sent += _messages(self.runtime.work())
        return sent

    def close(self) -> list[JsonValue]:
        """End the input and return the messages that still arrived."""
        sent = _messages(self.runtime.end(self.connection))
        while (wait := self._next_step()) is not None:
            time.sleep(wait)
            sent += _messages(self.runtime.work())
        self.runtime.abandon(self.connection)
        return sent

    def _next_step(self) -> float | None:
        """Return the seconds until an operation resumes, or None if that is not within the timeout."""
        due = self.runtime.due()
        return due if due is not None and due < self.timeout else None


def _messages(sent: Iterable[Sent]) -> list[JsonValue]:
    return [json.loads(each.message) for each in sent if isinstance(each, Send)]


class Command(Target):
    """A connection to a process over its standard input and output.

    After the expected messages, the target sends a ping (``openings/barrier.yaml``). Messages before the response to it
    belong to the turn. If the server does not support ping, the turn ends after a period without messages.
    """

    ordered = True

    def __init__(
        self, argv: Sequence[str], timeout: float = TIMEOUT, quiet: float | None = None, pings: bool | None = None
    ) -> None:
        """Start the command.

        Args:
            timeout: seconds for one turn, and for the end of the process.
            quiet: seconds without a message that end a turn, instead of a ping.
            pings: whether the server answers pings; None if that is not known.

        Raises:
            OSError: if the command cannot be started.
        """
        self.timeout, self.quiet = timeout, quiet
        self.pings = False if quiet is not None else pings
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.stderr: collections.deque[str] = collections.deque(maxlen=_STDERR_LINES)
        (barrier,) = transcript.packaged_opening("barrier", "")
        self.barrier, self.barrier_id = framing.line(barrier.line), barrier.request
        self.unanswered = 0  # pings
        self.responsive = self.ended = self.killed = False
        self.faults = [] if pings is not False or quiet is not None else [_NO_PING]
        self.threads = [threading.Thread(target=read, daemon=True) for read in (self._read, self._read_stderr)]
        for thread in self.threads:
            thread.start()

    def exchange(self, line: bytes, count: int, pending: str | int | None = None) -> list[JsonValue]:
        """Send one line; return the messages that follow, until no more belong to it or the timeout ends."""
        self._write(framing.line(line))
        messages: list[JsonValue] = []
        deadline = time.monotonic() + self.timeout
        try:
            while is_incomplete(messages, count, pending):
                self._take(messages, deadline)
            self._receive_rest(messages, deadline)
        except queue.Empty:
            self.faults.append(f"The server took longer than {self.timeout:g} s.")
        except EOFError:
            if not self.ended:
                self.faults.append("The server closed its output.")
            self.ended = True
        return messages

    def report(self) -> list[str]:
        """Return the faults since the last call: no ping, a timeout, or an early end."""
        faults, self.faults = self.faults, []
        return faults

    def close(self) -> list[JsonValue]:
        """Close the input and wait for the end of the process; return the messages that still arrived."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the process has ended
            self.process.stdin.close()
        messages: list[JsonValue] = []
        deadline = time.monotonic() + self.timeout
        try:
            while True:
                self._take(messages, deadline)
        except (queue.Empty, EOFError):
            pass
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.killed = True
            self.process.kill()
            self.process.wait()
        self.threads[1].join(1)  # a child of the process may hold its stderr open
        return messages

    def notes(self) -> list[str]:
        """Return how the process ended and the last lines of its stderr; call it after `close`."""
        end = "was killed: it did not end with its input" if self.killed else f"exit status {self.process.returncode}"
        return [f"The server: {end}", *(f"stderr: {line}" for line in [*self.stderr])]

    def _receive_rest(self, messages: list[JsonValue], deadline: float) -> None:
        """Add the rest of the messages of a turn. Raises EOFError, and queue.Empty at ``deadline``."""
        if self.pings is not False:
            self._write(self.barrier)
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
                self.faults.append(_NO_PING)
                return
        with contextlib.suppress(queue.Empty):
            while time.monotonic() < deadline:
                self._take(messages, time.monotonic() + (_QUIET if self.quiet is None else self.quiet))

    def _write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `_read` notices the end of the output
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self.lines.put(line)
        self.lines.put(None)

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as errors:
            while line := errors.readline(1 << 16):
                text = line.decode("utf-8", "replace").rstrip("\r\n")[:_STDERR_CHARACTERS]
                self.stderr.append("".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text))

    def _take(self, messages: list[JsonValue], deadline: float) -> None:
        """Add the next message; a line that is not JSON becomes a string. Raises EOFError or queue.Empty."""
        line = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
        if line is None:
            self.lines.put(None)
            raise EOFError
        self.responsive = True
        try:
            value: JsonValue = json.loads(line)
        except ValueError:
            value = line.decode("utf-8", "replace").rstrip("\n")
        if self.unanswered and isinstance(value, dict) and value.get("id") == self.barrier_id and "method" not in value:
            self.unanswered -= 1
        else:
            messages.append(value)


_NO_PING = "The server does not answer ping. Use --quiet SECONDS to replay without it."
