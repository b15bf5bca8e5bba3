"""Runs a transcript on a server: a runtime in this process, or any command that speaks MCP over stdio."""

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
from tmkb.conformance.transcript import Exchange, Transcript
from tmkb.protocol import messages as message
from tmkb.protocol.effects import Send
from tmkb.schema.values import JsonValue
from tmkb.server.runtime import Runtime, Sent
from tmkb.transport import framing

TIMEOUT = 30.0  # default for the seconds that a server may take for one exchange, and to end
_PING = 5.0  # seconds until a server that has answered, but never a ping, is taken to have none
_QUIET = 0.5  # seconds without a message that count as silence where a server has no ping
_STDERR_LINES = 20
_STDERR_CHARACTERS = 500


class Target(Protocol):
    """A server with one client. Whether what it sends is `ordered`: on several streams it is not."""

    ordered: bool

    def exchange(self, line: bytes, expected: int, awaited: str | int | None = None) -> list[JsonValue]:
        """Send one line and return all messages that follow.

        Waits for ``expected`` messages, or where the id ``awaited`` is given, for the response to that request or a
        request of the server.
        """

    def report(self) -> list[str]:
        """Return what went wrong besides messages since the last call, as sentences."""

    def close(self) -> list[JsonValue]:
        """End the connection; return the messages that still came."""

    def notes(self) -> list[str]:
        """Return what helps to explain a failure, such as the end of stderr; call it after `close`."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came back in one exchange of a transcript, and how that differs from what was expected."""

    number: int  # from 1; 0 is the opening; one more than there are exchanges: what came after the last
    about: str
    actual: list[JsonValue]
    differences: list[str]
    answered: bool = True  # False: a request got no response that is expected or awaited


def replay(replayed: Transcript, revision: str, target: Target, record: bool = False) -> Iterator[Replayed]:
    """Run ``replayed`` under ``revision`` on ``target`` and close it; yield a result for each exchange.

    An opening that fails is the only result. With ``record``, a request that expects nothing is answered before the
    next line is sent, unless a later exchange cancels it or expects its response.
    """
    number, failed, late = 0, False, []
    try:
        for exchange in replayed.opening(revision):
            actual = target.exchange(exchange.line, len(exchange.expect))
            if found := list(_misshapen(exchange, actual)):
                failed = True
                yield Replayed(0, "The opening failed", actual, [*found, *target.report()], answered=False)
                return
        exchanges = replayed.exchanges(revision)
        awaited = _awaited(exchanges) if record else {}
        for number, exchange in enumerate(exchanges, 1):
            id_ = awaited.get(number)
            waiting = () if id_ is None else (id_,)
            actual = target.exchange(exchange.line, len(exchange.expect), *waiting)
            if not target.ordered:
                actual = match.arranged(exchange.expect, actual)
            found = list(match.differences([*exchange.expect], [*actual]))
            wanted = exchange.request if any(_answers(each, exchange.request) for each in exchange.expect) else id_
            answered = wanted is None or _is_settled(actual, wanted)
            yield Replayed(number, exchange.about, actual, [*found, *target.report()], answered)
    finally:
        late = target.close()
    if late and not failed:
        yield Replayed(
            number + 1, "After the end of input", late, [f"not expected: {message.compact(m)}" for m in late]
        )


def _misshapen(exchange: Exchange, actual: Sequence[JsonValue]) -> Iterator[str]:
    """Yield a sentence for each fault of the answers to a line of an opening. Other messages may come besides."""
    for each in actual:
        if not isinstance(each, dict) or each.get("jsonrpc") != "2.0":
            yield f"not a JSON-RPC message: {message.compact(each)[:200]}"
    if exchange.request is None:
        return
    method = json.loads(exchange.line)["method"]
    answers: list[Any] = [each for each in actual if _answers(each, exchange.request)]
    if len(answers) != 1:
        yield f"{method}: expected one response, got {len(answers)}"
    for answer in answers:
        if "result" not in answer:
            yield f"{method}: expected a result, got {message.compact(answer)[:200]}"
        elif (schema := transcript.result_schema(method)) is not None:
            for error in jsonschema.Draft202012Validator(schema).iter_errors(answer["result"]):
                yield f"{method}: {'.'.join(['result', *map(str, error.absolute_path)])}: {error.message}"


def _awaited(exchanges: Sequence[Exchange]) -> dict[int, str | int]:
    """Return number of an exchange → id of the request whose response it waits for when it is recorded."""
    found: dict[int, str | int] = {}
    outstanding: str | int | None = None
    for number, exchange in enumerate(exchanges, 1):
        later = exchanges[number:]
        if exchange.request is not None:
            outstanding = None if any(_settles(each, exchange.request) for each in later) else exchange.request
        if outstanding is not None and not exchange.expect and (exchange.request or exchange.is_response):
            found[number] = outstanding
    return found


def _settles(exchange: Exchange, request: str | int) -> bool:
    """Whether ``exchange`` expects the response to ``request`` or names its id, as a cancellation does."""
    return exchange.names == request or any(_answers(each, request) for each in exchange.expect)


def _is_settled(messages: Iterable[JsonValue], request: str | int) -> bool:
    """Whether a response to ``request`` is among ``messages``, or a request of the server, which waits for us."""
    return any(
        _answers(each, request) or (isinstance(each, dict) and {"id", "method"} <= each.keys()) for each in messages
    )


def _answers(value: JsonValue, request: str | int | None) -> bool:
    """Whether ``value`` is the response to ``request``."""
    if request is None or not isinstance(value, dict) or "method" in value:
        return False
    return type(value.get("id")) is type(request) and value["id"] == request


def lacks(messages: Sequence[JsonValue], expected: int, awaited: str | int | None) -> bool:
    """Whether a target waits on: fewer messages than ``expected`` came, or nothing settles the request ``awaited``."""
    return not _is_settled(messages, awaited) if awaited is not None else len(messages) < expected


class InProcess:
    """A connection to a runtime in this process: no pipes, no framing."""

    ordered = True

    def __init__(self, runtime: Runtime, timeout: float = TIMEOUT) -> None:
        """``timeout``: seconds; an operation that pauses for longer is not waited for."""
        self.runtime = runtime
        self.timeout = timeout
        self.connection = runtime.connect()

    def exchange(self, line: bytes, expected: int, awaited: str | int | None = None) -> list[JsonValue]:
        """Handle one line and run operations until they wait and no message is lacking."""
        sent = _messages(self.runtime.handle(self.connection, line))
        while (wait := self._wait()) is not None and (wait == 0 or lacks(sent, expected, awaited)):
            time.sleep(wait)
            sent += _messages(self.runtime.work())
        return sent

    def report(self) -> list[str]:
        """Return nothing: what goes wrong in this process is raised."""
        return []

    def notes(self) -> list[str]:
        """Return nothing, for the same reason."""
        return []

    def close(self) -> list[JsonValue]:
        """End the input and return the messages that still came."""
        sent = _messages(self.runtime.end(self.connection))
        while (wait := self._wait()) is not None:
            time.sleep(wait)
            sent += _messages(self.runtime.work())
        self.runtime.abandon(self.connection)
        return sent

    def _wait(self) -> float | None:
        """Seconds until an operation goes on; None where none does so soon."""
        due = self.runtime.due()
        return due if due is not None and due < self.timeout else None


def _messages(sent: Iterable[Sent]) -> list[JsonValue]:
    return [json.loads(each.message) for each in sent if isinstance(each, Send)]


class Command:
    """A connection to a process over its standard input and output.

    Silence cannot be seen. When everything expected has come, a ping follows (``openings/barrier.yaml``): what comes
    before its response belongs to the line. Where the server has no ping, a quiet period takes its place.
    """

    ordered = True

    def __init__(
        self, argv: Sequence[str], timeout: float = TIMEOUT, quiet: float | None = None, pings: bool | None = None
    ) -> None:
        """Start ``argv``.

        ``timeout``: seconds for one exchange, and for the end. ``quiet``: seconds without a message that are taken for
        silence, instead of a ping. ``pings``: whether the server answers pings, if that is known. Raises: OSError.
        """
        self.timeout, self.quiet = timeout, quiet
        self.pings = False if quiet is not None else pings
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.stderr: collections.deque[str] = collections.deque(maxlen=_STDERR_LINES)
        (barrier,) = transcript.shared("barrier", "")
        self.barrier, self.barrier_id = framing.line(barrier.line), barrier.request
        self.unanswered = 0  # pings
        self.heard = self.ended = self.killed = False
        self.faults = [] if pings is not False or quiet is not None else [_NO_PING]
        self.threads = [threading.Thread(target=read, daemon=True) for read in (self._read, self._read_stderr)]
        for thread in self.threads:
            thread.start()

    def exchange(self, line: bytes, expected: int, awaited: str | int | None = None) -> list[JsonValue]:
        """Send one line; return what comes until nothing is lacking and silence follows, or time is up."""
        self._write(framing.line(line))
        messages: list[JsonValue] = []
        deadline = time.monotonic() + self.timeout
        try:
            while lacks(messages, expected, awaited):
                self._take(messages, deadline)
            self._await_silence(messages, deadline)
        except queue.Empty:
            self.faults.append(f"The server took longer than {self.timeout:g} s.")
        except EOFError:
            if not self.ended:
                self.faults.append("The server closed its output.")
            self.ended = True
        return messages

    def report(self) -> list[str]:
        """Return what went wrong since the last call: no ping, no answer in time, an early end."""
        faults, self.faults = self.faults, []
        return faults

    def close(self) -> list[JsonValue]:
        """Close the input and wait for the end of the process; return the messages that still came."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it had ended before
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

    def _await_silence(self, messages: list[JsonValue], deadline: float) -> None:
        """Add to ``messages`` what still belongs to the line. Raises EOFError, and queue.Empty when time is up."""
        if self.pings is not False:
            self._write(self.barrier)
            self.unanswered += 1
            # Before its first answer a server may still be starting; one that has answered pings may be busy.
            patience = deadline if self.pings or not self.heard else min(deadline, time.monotonic() + _PING)
            try:
                while self.unanswered:
                    self._take(messages, patience)
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
        with contextlib.suppress(BrokenPipeError):  # the end of its output is reported
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
        """Add the next message; a line that is not JSON as a string. Raises: EOFError; queue.Empty at ``deadline``."""
        line = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
        if line is None:
            self.lines.put(None)
            raise EOFError
        self.heard = True
        try:
            value: JsonValue = json.loads(line)
        except ValueError:
            value = line.decode("utf-8", "replace").rstrip("\n")
        if self.unanswered and isinstance(value, dict) and value.get("id") == self.barrier_id and "method" not in value:
            self.unanswered -= 1
        else:
            messages.append(value)


_NO_PING = "The server does not answer ping. With --quiet SECONDS a replay judges silence without it."
