"""Connections to a server for checks: a process over stdio, or a URL.

Unlike the targets of a replay, they send nothing by themselves but answers to requests of the server, give the status
and the headers of HTTP responses, and keep every line that the server wrote.
"""

from __future__ import annotations

import contextlib
import json
import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tmkb.conformance import sse
from tmkb.conformance.process import Process
from tmkb.transport import framing

if TYPE_CHECKING:
    import httpx2

    from tmkb.schema.values import JsonValue

Done = Callable[["JsonValue"], bool]  # whether a message is the last one of a step
Answer = Callable[["JsonValue"], bytes | None]  # the response to a message, if it is a request of the server

STDIO, HTTP = "stdio", "http"
_EVENTS = "text/event-stream"
_STDERR_LINES = 10  # in a report
_END = 2.0  # seconds for the end of a process whose input is closed
_START = 3  # times the timeout: for the first response of a process, which includes its start
_MESSAGES = 10_000  # in one step; a server that sends more is not waited for
_LARGEST = 1 << 26  # bytes of a line, or of an HTTP response


@dataclass(slots=True)
class Reply:
    """What followed one step: messages, and over HTTP the status, the headers and the body of the response.

    ``fault``: why the last message did not arrive. It is empty if it did, or if nothing was waited for.
    """

    messages: list[JsonValue] = field(default_factory=list)
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    fault: str = ""


class Peer(Protocol):
    """A connection to a server. ``transport``: "stdio" or "http". ``lines``: every line of the server."""

    transport: str
    lines: list[str]

    def send(self, body: bytes, done: Done | None, headers: Mapping[str, str] | None = None, verb: str = "") -> Reply:
        """Send one line and return the messages up to the one that is ``done``, or until the timeout.

        Without ``done``, a pipe is not read; an HTTP response is read to its end. ``headers`` and ``verb`` are for
        HTTP.
        """

    def close(self) -> str:
        """End the connection. Return the end of stderr, for a report."""


class Pipe(Peer):
    """A process that speaks over its standard input and output."""

    transport = STDIO

    def __init__(self, argv: Sequence[str], timeout: float, answer: Answer) -> None:
        """Start the command. ``timeout``: seconds for one step. Raises OSError if it cannot be started."""
        self.timeout, self.answer = timeout, answer
        self.lines: list[str] = []
        self.process = Process(argv)

    def send(self, body: bytes, done: Done | None, headers: Mapping[str, str] | None = None, verb: str = "") -> Reply:
        """See `Peer.send`."""
        self.process.write(framing.line(body))
        reply = Reply()
        timeout = self.timeout if self.lines else _START * self.timeout
        deadline = time.monotonic() + timeout
        while done is not None:
            if len(reply.messages) >= _MESSAGES:
                reply.fault = f"no response in {_MESSAGES} messages"
                break
            try:
                line = self.process.line(deadline - time.monotonic())
            except queue.Empty:
                reply.fault = f"no response within {timeout:g} s"
                break
            except EOFError:
                reply.fault = "the server closed its output"
                break
            message = self._message(line)
            reply.messages.append(message)
            if (answer := self.answer(message)) is not None:
                self.process.write(framing.line(answer))
            if done(message):
                break
        return reply

    def end(self) -> bool:
        """Close the input. Return whether the process ends within the timeout."""
        self.process.close_input()
        return self.process.wait(self.timeout)

    def close(self) -> str:
        """See `Peer.close`. A process that does not end soon is killed."""
        self.process.close_input()
        self.process.end(min(self.timeout, _END))
        with contextlib.suppress(queue.Empty, EOFError):
            while True:
                self._message(self.process.line(0))
        return "\n".join([*self.process.stderr][-_STDERR_LINES:])

    def _message(self, line: bytes) -> JsonValue:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        self.lines.append(text)
        parsed: JsonValue = _parsed(text)
        return parsed


class Web(Peer):
    """A client of a URL over Streamable HTTP. Needs the extra ``replay``."""

    transport = HTTP

    def __init__(self, url: str, timeout: float, answer: Answer, headers: Sequence[tuple[str, str]] = ()) -> None:
        """``timeout``: seconds for one step; ``headers``: of each request. The first step connects."""
        import httpx2

        self.url, self.timeout, self.answer = url, timeout, answer
        self.lines: list[str] = []
        self.client = httpx2.Client(timeout=timeout, trust_env=False, headers=[*headers])
        self.failures = httpx2.HTTPError

    def send(self, body: bytes, done: Done | None, headers: Mapping[str, str] | None = None, verb: str = "") -> Reply:
        """See `Peer.send`. The verb is POST unless another one is given."""
        reply = Reply()
        deadline = time.monotonic() + self.timeout
        try:
            with self.client.stream(verb or "POST", self.url, headers=dict(headers or {}), content=body) as response:
                reply.status, reply.headers = response.status_code, response.headers
                is_last = False
                if not (verb and response.headers.get("content-type", "").startswith(_EVENTS)):
                    for message in self._messages(response, reply, deadline):
                        reply.messages.append(message)
                        if (answer := self.answer(message)) is not None:
                            self.client.post(self.url, headers=dict(headers or {}), content=answer)
                        if is_last := done is not None and done(message):
                            break
                if done is not None and not is_last and not reply.fault:
                    reply.fault = f"HTTP status {reply.status} without a response to the request"
        except self.failures as error:
            reply.fault = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return reply

    def close(self) -> str:
        """See `Peer.close`."""
        self.client.close()
        return ""

    def _messages(self, response: httpx2.Response, reply: Reply, deadline: float) -> Iterator[JsonValue]:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != _EVENTS:
            reply.body = b"".join(_limited(response.iter_bytes(), deadline))
            text = reply.body.decode("utf-8", "replace").strip()
            if text and kind == "application/json":
                if response.status_code < 400:  # the body of a refusal need not be a message
                    self.lines.append(text)
                yield _parsed(text)
            return
        for data in sse.messages(_limited(response.iter_bytes(), deadline)):
            text = data.decode("utf-8", "replace")
            self.lines.append(text)
            yield _parsed(text)
        if time.monotonic() > deadline:
            reply.fault = f"no response within {self.timeout:g} s"


def _parsed(text: str) -> Any:
    """Return the JSON value of a line; a line that is not JSON stays a string."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(constant: str) -> None:
    """Raise ValueError: NaN and infinities are no JSON."""
    raise ValueError(constant)


def _limited(chunks: Iterator[bytes], deadline: float) -> Iterator[bytes]:
    """Yield the chunks that arrive until a time, at most `_LARGEST` bytes."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > _LARGEST or time.monotonic() > deadline:
            return
        yield chunk
