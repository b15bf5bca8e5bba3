"""A server over Streamable HTTP as a target of transcripts: a client that says in headers what the revision wants."""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import socket
import threading
import time
import urllib.parse
from typing import Any

from tmkb.conformance.replay import TIMEOUT, lacks
from tmkb.errors import ProtocolError
from tmkb.protocol import headers, messages, negotiation
from tmkb.protocol.messages import Notification, Request
from tmkb.schema.model import Spec
from tmkb.schema.values import JsonValue

_MOMENT = 0.1  # seconds in which what was sent before arrives on another stream
_LOOK = 0.5  # seconds until it is looked again whether a request still waits
_ACCEPTED = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Http:
    """A client of the server at ``address``, with a session where it shakes hands."""

    ordered = False

    def __init__(self, address: str, spec: Spec, timeout: float = TIMEOUT) -> None:
        """``spec`` has the headers of each revision, and says which arguments are also sent as headers.

        ``timeout``: seconds that the server may take for one exchange.
        """
        self.address = urllib.parse.urlsplit(address)
        self.spec = spec
        self.timeout = timeout
        self.faults: list[str] = []
        self.session: dict[str, str] = {}
        self.came: queue.SimpleQueue[JsonValue] = queue.SimpleQueue()
        self.open: dict[object, _Response] = {}  # by the id of the request; None: what belongs to none

    def reach(self) -> None:
        """Connect once and hang up. Raises OSError with the cause where nothing listens."""
        assert self.address.hostname is not None
        address = self.address.hostname, self.address.port or http.client.HTTP_PORT
        socket.create_connection(address, self.timeout).close()

    def exchange(self, line: bytes, expected: int, awaited: str | int | None = None) -> list[JsonValue]:
        """Send one line; return what comes until the request is answered and nothing is lacking, or time is up."""
        try:
            sent: Any = messages.read(messages.decode(line))
        except ProtocolError:
            sent = None
        if self._hangs_up(sent):
            return self._until(expected, awaited, None)
        response = _Response(self, getattr(sent, "id", line), line, self._headers(sent))
        if isinstance(sent, Request) and negotiation.version_param(self.spec, sent) is not None:
            response.thread.join(self.timeout)
            self._begin(response)
        return self._until(expected, awaited, response)

    def report(self) -> list[str]:
        """Return what went wrong since the last call: no connection, or an answer that is not a message."""
        faults, self.faults = self.faults, []
        return faults

    def notes(self) -> list[str]:
        """Return nothing: the process is not ours."""
        return []

    def close(self) -> list[JsonValue]:
        """End the session and every stream; everything that still came."""
        if self.session:
            with (
                contextlib.suppress(OSError, http.client.HTTPException),  # a server may have gone
                contextlib.closing(self.request("DELETE", b"", self.session)) as connection,
            ):
                connection.getresponse().read()
        for response in [*self.open.values()]:
            response.close()
        return self._taken()

    def request(self, verb: str, body: bytes, said: dict[str, str]) -> http.client.HTTPConnection:
        """Send one HTTP request, on a connection of its own, which is given."""
        assert self.address.hostname is not None
        connection = http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=self.timeout)
        connection.request(verb, self.address.path or "/", body, said)
        return connection

    def _headers(self, sent: Any) -> dict[str, str]:
        meta: Any = sent.params.get("_meta") if isinstance(sent, Request) else None
        if (revision := negotiation.describing(self.spec, meta)) is None:
            return _ACCEPTED | self.session
        named = meta.get(revision["request_metadata"]["revision"])
        said = headers.for_request(self.spec, revision, sent)
        return _ACCEPTED | said | ({revision["http"]["version"]: named} if isinstance(named, str) else {})

    def _begin(self, response: _Response) -> None:
        """The handshake has been answered: name the session from now on, and hear what belongs to no request."""
        for name in self.spec["server"]["revisions"]:
            rules = self.spec["revisions"][name]["http"]
            if (
                "session" in rules
                and (session := response.headers.get(rules["session"])) is not None
                and not self.session
            ):
                self.session = {rules["session"]: session}
                if "version" in rules:
                    self.session[rules["version"]] = response.negotiated or name
                _Response(self, None, b"", {**self.session, "Accept": "text/event-stream"}, verb="GET")

    def _hangs_up(self, sent: Any) -> bool:
        """Whether ``sent`` cancels a request that describes itself, which a client does by closing its stream."""
        id_ = sent.params.get("requestId") if isinstance(sent, Notification) else None
        response = self.open.get(id_) if isinstance(id_, str | int) else None
        if response is None or not response.alone:
            return False
        response.close()
        return True

    def _until(self, expected: int, awaited: str | int | None, response: _Response | None) -> list[JsonValue]:
        found: list[JsonValue] = []
        deadline = time.monotonic() + self.timeout
        while lacks(found, expected, awaited):
            # Messages can come as long as a request waits for its answer, and for a moment after.
            left = deadline - time.monotonic() if self._busy() else 0.0
            try:
                found.append(self.came.get(timeout=max(_MOMENT, min(left, _LOOK))))
            except queue.Empty:
                if left <= 0:
                    break
        if response is not None:
            response.thread.join(_MOMENT if self._busy() else self.timeout)
        return found + self._taken()

    def _busy(self) -> bool:
        """Whether a request waits for its answer."""
        return any(id_ is not None for id_ in self.open)

    def _taken(self) -> list[JsonValue]:
        found: list[JsonValue] = []
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self.came.get_nowait())
        return found


class _Response:
    """The answer to one request, read in a thread of its own to its end."""

    def __init__(self, target: Http, id_: object, body: bytes, said: dict[str, str], verb: str = "POST") -> None:
        self.target = target
        self.id = id_
        self.headers: Any = {}  # names in any case
        self.status = ""
        self.negotiated: str | None = None
        self.closed = False
        self.socket: socket.socket | None = None
        self.alone = verb == "POST" and not (
            target.session and target.session.items() <= said.items()
        )  # it describes itself
        target.open[id_] = self
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._read, args=(verb, body, said), daemon=True)
        self.thread.start()
        if verb == "GET":
            self.ready.wait(target.timeout)

    def close(self) -> None:
        """Read no more."""
        self.closed = True
        if self.socket is not None:
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(self.target.timeout)

    def _read(self, verb: str, body: bytes, said: dict[str, str]) -> None:
        try:
            with contextlib.closing(self.target.request(verb, body, said)) as connection:
                self.socket = connection.sock
                with connection.getresponse() as response:
                    self.headers, self.status = response.headers, f"{response.status} {response.reason}"
                    self.ready.set()
                    self._take(response)
        except (OSError, ValueError, http.client.HTTPException) as error:
            if verb == "POST" and not self.closed:
                self.target.faults.append(f"{self.target.address.geturl()}: {self.status or error}")
        finally:
            self.ready.set()
            self.target.open.pop(self.id, None)

    def _take(self, response: http.client.HTTPResponse) -> None:
        if not self.headers.get("content-type", "").startswith("text/event-stream"):
            text = response.read()
            if text:
                self._put(json.loads(text))
            return
        for line in response:
            data = line.removeprefix(b"data: ").strip()
            if line.startswith(b"data: ") and data:
                self._put(json.loads(data))

    def _put(self, value: Any) -> None:
        if isinstance(value, dict) and isinstance(value.get("result"), dict):
            self.negotiated = value["result"].get("protocolVersion", self.negotiated)
        self.target.came.put(value)
