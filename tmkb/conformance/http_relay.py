"""Relay HTTP requests to a server unchanged, and hand the messages in them to a journal.

Each connection of a client has one to the server. Only the header Host changes. Chunks are forwarded as they arrive, so
streams of events stay streams. Needs h11, which the extras ``http`` and ``replay`` install.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import ssl
import urllib.parse
import zlib
from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING, Any

import h11

from tmkb.conformance import journal, sse
from tmkb.conformance.journal import Journal
from tmkb.errors import ProtocolError
from tmkb.protocol import messages
from tmkb.transport.guard import LOOPBACK

if TYPE_CHECKING:
    from tmkb.schema.model import Spec

_CHUNK = 1 << 16
_HEAD = 1 << 20  # bytes of the headers of one request or response
_EVENTS = b"text/event-stream"
_JSON = b"application/json"
_WINDOW_BITS = zlib.MAX_WBITS | 32  # gzip or zlib, whichever the data has
_HEADER_BYTES = 2  # of zlib


class Relay:
    """Relays between clients and the server at ``url``.

    Attributes:
        notes: sentences about what could not be relayed or recorded.
    """

    def __init__(self, url: str, output: Journal, spec: Spec) -> None:
        """Hand messages to ``output``, those of each session under a number of its own.

        ``spec``: the rules of all revisions: the headers with sessions, and the methods of handshakes.
        """
        rules = [each["http"] for each in spec["revisions"].values()]
        self._session_headers = {each["session"].lower().encode() for each in rules if "session" in each}
        self.url = urllib.parse.urlsplit(url)
        self.output = output
        self.notes: list[str] = []
        self.sessions = _Sessions(spec["negotiation"]["version_params"])
        self._tls = ssl.create_default_context() if self.url.scheme == "https" else None
        self._connections: set[asyncio.Task[None]] = set()

    def session(self, headers: Mapping[bytes, bytes]) -> bytes | None:
        """Return the session that a request or a response names; None if it names none."""
        return next((headers[name] for name in self._session_headers if name in headers), None)

    async def serve(self, bound: socket.socket) -> None:
        """Serve at the socket ``bound`` until SIGINT or SIGTERM arrives."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):  # Windows: Ctrl-C ends the event loop
                loop.add_signal_handler(number, stop.set)
        server = await asyncio.start_server(self._accept, sock=bound)
        await stop.wait()
        server.close()
        for task in [*self._connections]:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection to the server. Raises OSError."""
        port = self.url.port or (443 if self._tls else 80)
        return await asyncio.open_connection(self.url.hostname, port, ssl=self._tls)

    def target(self, target: bytes) -> bytes:
        """Return the target of a request to the server: that of the URL, with its query, for the same path."""
        if self.url.query and target == (self.url.path or "/").encode():
            return target + b"?" + self.url.query.encode()
        return target

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        connection = _Connection(self, reader, writer)
        try:
            await connection.run()
        except h11.ProtocolError as error:
            self.notes.append(f"A request could not be relayed: {error}.")
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            connection.close()


class _Sessions:
    """Numbers the conversations: a session has one, and so have all requests without a session up to a handshake."""

    def __init__(self, handshakes: Container[str]) -> None:
        """``handshakes``: the methods that open a connection."""
        self._handshakes = handshakes
        self._numbers: dict[bytes, int] = {}
        self._count = 0
        self._without = -1  # the number of the conversation without a session
        self._is_opened = False  # whether that has had a handshake

    def number_for(self, session: bytes | None, body: bytes) -> int:
        """Return the number of the conversation that a message from a client belongs to."""
        if session is not None:
            return self._numbers[session] if session in self._numbers else self.join(session, self._next())
        try:
            value = messages.decode(body)
        except ProtocolError:
            value = None
        opens = isinstance(value, dict) and str(value.get("method")) in self._handshakes
        if self._without < 0 or (opens and self._is_opened):
            self._without, self._is_opened = self._next(), False
        self._is_opened = self._is_opened or opens
        return self._without

    def join(self, session: bytes, number: int) -> int:
        """Assign ``session`` to the conversation ``number``, unless it has another; return its conversation."""
        if session not in self._numbers:
            self._numbers[session] = number
            if number == self._without:
                self._without = -1
        return self._numbers[session]

    def _next(self) -> int:
        self._count += 1
        return self._count - 1


class _Connection:
    """One connection of a client, and that to the server."""

    def __init__(self, relay: Relay, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.relay = relay
        self.reader, self.writer = reader, writer
        self.client = h11.Connection(h11.SERVER, _HEAD)
        self.server = h11.Connection(h11.CLIENT, _HEAD)
        self.upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.answering: asyncio.Task[None] | None = None
        self.next_cycle = asyncio.Event()
        self.request = bytearray()
        self.session: bytes | None = None
        self.number = -1
        self.is_post = False
        self.read_body: Callable[[bytes, bool], None] = _ignore

    async def run(self) -> None:
        """Relay requests until either side closes its connection."""
        while await self._step():
            pass
        await self._finish()

    async def _step(self) -> bool:
        """Relay the next part of a request; return whether there can be more."""
        event = self.client.next_event()
        if event is h11.NEED_DATA:
            data = await self.reader.read(_CHUNK)
            self.client.receive_data(data)
            return bool(data) or self.client.their_state is h11.IDLE
        if event is h11.PAUSED:
            self.next_cycle.clear()
            self._start_next_cycle()
            if self.client.our_state is not h11.IDLE:
                await self.next_cycle.wait()
            return True
        if isinstance(event, h11.Request):
            return await self._begin(event)
        if isinstance(event, h11.Data):
            self.request += event.data
        elif isinstance(event, h11.EndOfMessage):
            self._note_request()
        else:
            return False
        await self._to_server(event)
        return True

    def close(self) -> None:
        """Close both connections."""
        if self.answering is not None:
            self.answering.cancel()
        for writer in (self.writer, self.upstream and self.upstream[1]):
            if writer:
                with contextlib.suppress(OSError, RuntimeError):
                    writer.close()

    async def _finish(self) -> None:
        """Close the sending side of the connection to the server, and relay the rest of the response."""
        if self.upstream is None or self.answering is None or self.server.our_state is h11.IDLE:
            return
        if self.upstream[1].can_write_eof():
            self.upstream[1].write_eof()
            await self.answering

    async def _begin(self, event: h11.Request) -> bool:
        """Relay the head of a request; return whether the server could be reached and the request is permitted."""
        headers = dict(event.headers)
        if (host := _host(headers.get(b"host", b""))) not in self.hosts():
            await self._refuse(403, f"This recorder does not serve the host {host!r}. Use its IP address.")
            return False
        self.session, self.is_post = self.relay.session(headers), event.method == b"POST"
        self.number = -1
        self.request.clear()
        if self.upstream is None:
            try:
                self.upstream = await self.relay.connect()
            except OSError as error:
                text = f"Cannot reach {self.relay.url.hostname}: {_reason(error)}."
                self.relay.notes.append(text)
                await self._refuse(502, text)
                return False
            self.answering = asyncio.create_task(self._answer(self.upstream[0]))
        self._note_headers(event)
        others = [(name, value) for name, value in event.headers.raw_items() if name.lower() != b"host"]
        host_header = (b"Host", self.relay.url.netloc.rpartition("@")[2].encode())
        target = self.relay.target(event.target)
        await self._to_server(h11.Request(method=event.method, headers=[host_header, *others], target=target))
        return True

    def hosts(self) -> set[str]:
        """Return the permitted hosts of a request. A web page can make other names resolve to this address."""
        return {*(name.strip("[]") for name in LOOPBACK), str(self.writer.get_extra_info("sockname")[0])}

    async def _refuse(self, status: int, text: str) -> None:
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Connection", "close")]
        body = text.encode()
        await self._to_client(h11.Response(status_code=status, headers=[*headers, ("Content-Length", str(len(body)))]))
        await self._to_client(h11.Data(data=body))
        await self._to_client(h11.EndOfMessage())

    def _note_headers(self, event: h11.Request | h11.Response) -> None:
        """Hand over headers, because messages may repeat the secrets in them."""
        lines = b"\n".join(b": ".join(each) for each in event.headers)
        self.relay.output.put(max(self.number, 0), journal.HEADERS, lines)

    def _note_request(self) -> None:
        if self.is_post and self.request:
            body = bytes(self.request)
            self.number = self.relay.sessions.number_for(self.session, body)
            self.relay.output.put(self.number, journal.CLIENT_MESSAGE, body)
        elif self.session is not None:
            self.number = self.relay.sessions.number_for(self.session, b"")

    async def _answer(self, reader: asyncio.StreamReader) -> None:
        """Relay responses until the server closes its connection."""
        try:
            while True:
                event = self.server.next_event()
                if event is h11.NEED_DATA:
                    self.server.receive_data(await reader.read(_CHUNK))
                elif event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                    return
                else:
                    await self._relay_response(event)
        except h11.ProtocolError as error:
            text = f"A response could not be relayed: {error}."
            self.relay.notes.append(text)
            if self.client.our_state is h11.SEND_RESPONSE:
                await self._refuse(502, text)
        except OSError:
            pass
        finally:
            self.next_cycle.set()
            with contextlib.suppress(OSError, RuntimeError):
                self.writer.close()

    async def _relay_response(self, event: Any) -> None:
        if isinstance(event, h11.Response):
            self._note_headers(event)
            self.read_body = self._reader_of(event)
            event = _as_http11(event)
        elif isinstance(event, h11.Data):
            self.read_body(event.data, False)
        elif isinstance(event, h11.EndOfMessage):
            self.read_body(b"", True)
        await self._to_client(event)
        if isinstance(event, h11.EndOfMessage):
            self._start_next_cycle()

    def _reader_of(self, event: h11.Response) -> Callable[[bytes, bool], None]:
        """Return a function that gets the body of a response, and hands over the messages in it."""
        headers = dict(event.headers)
        if (session := self.relay.session(headers)) is not None and self.number >= 0:
            self.number = self.relay.sessions.join(session, self.number)
        number = self.number
        if number < 0:
            return _ignore

        def put(message: bytes) -> None:
            self.relay.output.put(number, journal.SERVER_MESSAGE, message)

        kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        coding = headers.get(b"content-encoding", b"identity").strip().lower()
        is_encoded = coding != b"identity"
        if kind == _EVENTS:
            feed = _event_reader(put)
        elif kind == _JSON:
            length = b"-1" if is_encoded else headers.get(b"content-length", b"-1")
            feed = _Body(put, int(length)).feed
        else:
            return _ignore
        if not is_encoded:
            return feed
        if coding not in (b"gzip", b"x-gzip", b"deflate"):
            self._note_unread(f"with the encoding {coding.decode('latin-1')}")
            return _ignore
        return _inflated(feed, lambda: self._note_unread(f"with damaged {coding.decode('latin-1')} data"))

    def _note_unread(self, response: str) -> None:
        self.relay.notes.append(f"A response {response} is not recorded.")

    def _start_next_cycle(self) -> None:
        if all(c.our_state is h11.DONE and c.their_state is h11.DONE for c in (self.client, self.server)):
            self.client.start_next_cycle()
            self.server.start_next_cycle()
            self.next_cycle.set()

    async def _to_server(self, event: Any) -> None:
        assert self.upstream is not None
        if data := self.server.send(event):
            self.upstream[1].write(data)
            await self.upstream[1].drain()

    async def _to_client(self, event: Any) -> None:
        if data := self.client.send(event):
            self.writer.write(data)
            await self.writer.drain()


class _Body:
    """Collects a body, and hands it over before its last byte is relayed."""

    def __init__(self, put: Callable[[bytes], None], length: int) -> None:
        self._put = put
        self._missing = length
        self._body = bytearray()

    def feed(self, data: bytes, is_last: bool) -> None:
        self._body += data
        self._missing -= len(data)
        if self._body and (is_last or self._missing == 0):
            self._put(bytes(self._body))
            self._body.clear()


def _event_reader(put: Callable[[bytes], None]) -> Callable[[bytes, bool], None]:
    """Return a function that reads a stream of events, and hands over the message in each."""
    events = sse.Events()

    def feed(data: bytes, _: bool) -> None:
        for message in events.feed(data):
            put(message)

    return feed


def _inflated(feed: Callable[[bytes, bool], None], on_error: Callable[[], None]) -> Callable[[bytes, bool], None]:
    """Return a function that decompresses what it gets for ``feed``; it calls ``on_error`` for damaged data."""
    inflate, head, is_damaged = zlib.decompressobj(_WINDOW_BITS), b"", False

    def feed_inflated(data: bytes, is_last: bool) -> None:
        nonlocal inflate, head, is_damaged
        if is_damaged:
            return
        before = head
        head = (head + data)[:_HEADER_BYTES]
        try:
            data = inflate.decompress(data)
        except zlib.error:
            try:
                if len(before) == _HEADER_BYTES:
                    raise
                inflate = zlib.decompressobj(-zlib.MAX_WBITS)  # many servers send deflate without the header of zlib
                data = inflate.decompress(before + data)
            except zlib.error:
                is_damaged = True
                on_error()
                return
        feed(data, is_last)

    return feed_inflated


def _as_http11(response: h11.Response) -> h11.Response:
    """Return a response of HTTP/1.0 as one of HTTP/1.1, the only version that h11 sends."""
    if response.http_version == b"1.1":
        return response
    headers = [*response.headers.raw_items()]
    if b"keep-alive" not in dict(response.headers).get(b"connection", b"").lower():
        headers.append((b"Connection", b"close"))
    return h11.Response(status_code=response.status_code, headers=headers, reason=response.reason)


def _reason(error: OSError) -> str:
    """Return why a connection failed; asyncio replaces the words of the system by its own."""
    if isinstance(error, ssl.SSLError | socket.gaierror) or not error.errno:
        return error.strerror or str(error)
    return os.strerror(error.errno)


def _ignore(_: bytes, __: bool) -> None:
    pass


def _host(header: bytes) -> str:
    """Return the name in a header Host, without the port."""
    text = header.decode("latin-1").lower()
    return text[1:].partition("]")[0] if text.startswith("[") else text.partition(":")[0]
