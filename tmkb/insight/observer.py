"""Tell receivers about each request that has ended. Without an observer, a server does none of this.

A receiver gets names only from the server's own files, so that clients cannot make it keep any number of them. One that
raises is removed, and the request is answered as without it.
"""

from __future__ import annotations

from tmkb.protocol.handlers.tools import TOOL_ERROR
from tmkb.protocol.requests import CANCELLED
from tmkb.schema.values import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tmkb.protocol.requests import Exchange
    from tmkb.server.log import Log

OTHER = "other"  # instead of a name that only the client knows
_TRACE_HEADERS = ("traceparent", "tracestate")


@record
class Completion:
    """A request that has ended.

    ``method``, ``tool`` and ``prompt`` are names that the server knows, `OTHER`, or "" if the method has none.
    ``outcome``: ok, error, tool_error or cancelled. ``error``: an id of ``errors.yaml``, or "". ``began``: seconds of
    the connection's clock. ``exchange`` is what the client sent.
    """

    method: str
    tool: str
    prompt: str
    revision: str
    outcome: str
    error: str
    began: float
    seconds: float
    exchange: Exchange


class Receiver:
    """The base class of what receives the events of an observer. Every method does nothing."""

    def begin(self, observer: Observer) -> None:
        """Receive the observer, whose `figures` are the current numbers. Threads may start."""

    def completed(self, completion: Completion) -> None:
        """Receive a request that has ended."""

    def refused(self, error: str) -> None:
        """Receive the error of a message that is no request of a known revision, or that HTTP refused."""

    def received(self, size: int) -> None:
        """Receive the size of a message from a client, in bytes."""

    def sent(self, size: int) -> None:
        """Receive the size of a message to a client, in bytes."""

    def logged(self, line: str) -> None:
        """Receive the id of a log line about the server, not about a request."""

    def close(self) -> None:
        """Write what is left, when the server ends."""


class Observer:
    """Passes what happens to its receivers."""

    def __init__(self, receivers: Sequence[Receiver], log: Log) -> None:
        self.receivers = [*receivers]
        self.log = log
        self.measured: list[Callable[[], Mapping[str, int]]] = []
        self.identity: Callable[[], Mapping[str, str]] = dict
        log.observer = self

    def start(self) -> None:
        """Let receivers start threads. Call this after the last fork."""
        for receiver in self.receivers:
            receiver.begin(self)

    def measure(self, figures: Callable[[], Mapping[str, int]]) -> None:
        """Add a function that returns current numbers by name. Other threads call it."""
        self.measured.append(figures)

    def figures(self) -> dict[str, int]:
        """Return the current numbers of everything that is measured."""
        return {name: number for figures in self.measured for name, number in figures().items()}

    def identify(self, identity: Callable[[], Mapping[str, str]]) -> None:
        """Set the function that returns name and version of what is served. Other threads call it."""
        self.identity = identity

    def trace_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of W3C Trace Context."""
        return {name: headers[name] for name in _TRACE_HEADERS if name in headers}

    def ended(self, exchange: Exchange | None, error: str) -> None:
        """Pass on a request that has ended with ``error``, or without one; None if it has no known revision."""
        if exchange is None:
            self.refused(error)
        else:
            self._each("completed", completion(exchange, error))

    def refused(self, error: str) -> None:
        """Pass on that a message was refused with ``error``."""
        self._each("refused", error)

    def received(self, size: int) -> None:
        """Pass on the size of a received message."""
        self._each("received", size)

    def sent(self, size: int) -> None:
        """Pass on the size of a sent message."""
        self._each("sent", size)

    def logged(self, line: str) -> None:
        """Pass on the id of a log line."""
        self._each("logged", line)

    def close(self) -> None:
        """Close every receiver."""
        self._each("close")
        self.log.flush()

    def _each(self, event: str, *values: Any) -> None:
        for receiver in [*self.receivers]:
            try:
                getattr(receiver, event)(*values)
            except Exception as error:
                self.receivers.remove(receiver)
                self.log.write(
                    "observer_failed", name=type(receiver).__name__, error=f"{type(error).__name__}: {error}"
                )


def completion(exchange: Exchange, error: str) -> Completion:
    """Describe the end of ``exchange``."""
    assert exchange.connection.clock is not None  # else it is not observed
    revision, methods = exchange.revision, exchange.revision["methods"]
    handler = methods[exchange.method].get("handler") if exchange.method in methods else None
    name, spec = exchange.params.get("name"), exchange.spec
    return Completion(
        exchange.method if exchange.method in methods else OTHER,
        _known(name, spec["tools"]) if handler == "call_tool" else "",
        _known(name, spec["prompts"]) if handler == "get_prompt" else "",
        revision["revision"],
        _outcome(error, revision["errors"]),
        error,
        exchange.began,
        exchange.connection.clock() - exchange.began,
        exchange,
    )


def _known(name: object, definitions: Mapping[str, object]) -> str:
    return name if isinstance(name, str) and name in definitions else OTHER


def _outcome(error: str, errors: Mapping[str, Any]) -> str:
    if not error:
        return "ok"
    if error == CANCELLED:
        return CANCELLED
    is_protocol = error != TOOL_ERROR and errors.get(error, {}).get("surface") == "protocol"
    return "error" if is_protocol else TOOL_ERROR
