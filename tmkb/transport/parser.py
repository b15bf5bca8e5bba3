"""Requests from the bytes of one HTTP connection, without sockets. httptools parses.

httptools parses all it gets, but a connection has to stop after each head, because the application decides whether to
read the body, and after each request. So `Parser` hands over its bytes in pieces that end there. Heads and chunked
bodies end with an empty line, other bodies after as many bytes as the head declares. Only httptools decides what the
bytes mean. If a request does not end where its piece ends, it is refused.

Specification: RFC 9112 (HTTP/1.1).
"""

from __future__ import annotations

import urllib.parse
from typing import NamedTuple

import httptools

_EMPTY_LINE = b"\r\n\r\n"
_VERSIONS = ("1.0", "1.1")
_SCHEMES = ("http://", "https://")


class Invalid(Exception):
    """The bytes are not a request, or its head is too large."""


class Head(NamedTuple):
    """The head of a request.

    ``headers``: names in lower case; repeated headers are joined (RFC 9110, section 5.2). ``persists``: whether the
    client can send another request on the connection. ``is_modern``: whether it understands HTTP/1.1.
    """

    verb: str
    target: str
    headers: dict[str, str]
    persists: bool
    is_modern: bool


class End:
    """The end of a request."""


END = End()


class Parser:
    """Parses the requests of one connection.

    Bytes go in with `receive`. `next_event` returns what they contain: the `Head` of a request, then parts of its body,
    then `END`.
    """

    def __init__(self, max_head: int) -> None:
        """Start before the first request. ``max_head``: bytes of a head, and of what is around the chunks of a body."""
        self.max_head = max_head
        self.data = b""  # not parsed yet
        self.position = 0  # in `data`
        self._http = httptools.HttpRequestParser(self)
        self._body: list[bytes] = []
        self._before_request()

    def _before_request(self) -> None:
        self._fields: list[tuple[bytes, bytes]] = []
        self._line = self._target = self._last = b""
        self._head: Head | None = None
        self._reported = self._complete = self._skips_body = False
        self._size = 0  # bytes of the head, or of what came since the last byte of a chunk
        self.left: int | None = None  # bytes of the body that are to come; None if the request does not declare it

    @property
    def has_begun(self) -> bool:
        """Whether a part of a head has arrived."""
        return self._size > 0 or self.has_data

    @property
    def has_data(self) -> bool:
        """Whether there are bytes that are not parsed yet."""
        return self.position < len(self.data)

    @property
    def unparsed(self) -> int:
        """The number of bytes that are not parsed yet."""
        return len(self.data) - self.position

    @property
    def in_body(self) -> bool:
        """Whether a head has been returned, and `END` has not."""
        return self._reported

    @property
    def has_whole_body(self) -> bool:
        """Whether the rest of the request has arrived, as far as is known without parsing it."""
        return self._complete or (self.left is not None and self.unparsed >= self.left)

    def receive(self, data: bytes) -> None:
        """Append ``data`` to the bytes to parse."""
        self.data = self.data[self.position :] + data if self.has_data else data
        self.position = 0

    def discard(self) -> None:
        """Forget the bytes that are not parsed yet."""
        self.data, self.position = b"", 0

    def next_event(self) -> Head | bytes | End | None:
        """Return the next part of a request; None if more bytes are needed for it.

        Raises:
            Invalid: if the bytes are not HTTP, or not as strict as a server behind a proxy has to be.
        """
        while True:
            if self._head is not None and not self._reported:
                self._reported = True
                return self._head
            if self._body:
                body = b"".join(self._body)
                self._body.clear()
                return body
            if self._complete:
                self._before_request()
                return END
            if self._head is None and self._size == 0:
                self._skip_empty_lines()
                if self.unparsed == 1 and self.data.endswith(b"\r"):  # perhaps the start of another empty line
                    return None
            if not self.has_data:
                return None
            self._parse_piece()

    def close(self) -> None:
        """Release what the parser refers to, and what refers to it."""
        self.discard()
        del self._http

    def _skip_empty_lines(self) -> None:
        """Skip the empty lines before a request (RFC 9112, section 2.2)."""
        while self.data.startswith(b"\r\n", self.position):
            self.position += 2
        if not self.has_data:
            self.discard()

    def _parse_piece(self) -> None:
        is_head, piece = self._head is None, self._piece()
        self.position += len(piece)
        self._size += len(piece)
        if not self.has_data:
            self.discard()  # a connection that waits stores no bytes
        if self._size > self.max_head and self.left is None:
            raise Invalid("too large")
        try:
            self._http.feed_data(piece)
        except httptools.HttpParserUpgrade:
            self._continue_without_upgrade()
        except httptools.HttpParserError as error:
            raise Invalid(str(error)) from error
        if self.left is not None:
            self.left -= 0 if is_head else len(piece)
            if self._complete != (self.left == 0):
                raise Invalid("the body does not end where its size says")

    def _piece(self) -> bytes:
        """Return the next bytes to parse: at most up to the end of a head, or of a request."""
        data, start = self.data, self.position
        end = self._after_empty_line() if self.left is None else min(start + self.left, len(data))
        piece = data if start == 0 and end == len(data) else data[start:end]
        if self._head is None and self._line[-1:] != b"\n":
            self._line += piece[: piece.find(b"\n") + 1 or len(piece)]
        return piece

    def _after_empty_line(self) -> int:
        """Return the position after the next empty line, or that of the end of the data."""
        data, start, before = self.data, self.position, self._last
        if before and (found := (before + data[start : start + 3]).find(_EMPTY_LINE)) >= 0:
            end = start + found + len(_EMPTY_LINE) - len(before)  # the line began in the last piece
        else:
            found = data.find(_EMPTY_LINE, start)
            end = len(data) if found < 0 else found + len(_EMPTY_LINE)
        self._last = (before + data[max(start, end - 3) : end])[-3:]
        return end

    def _continue_without_upgrade(self) -> None:
        """Parse the body of a request that offers another protocol, which httptools would leave to that protocol.

        A server may ignore the offer (RFC 9110, section 7.8). Clients that prefer HTTP/2 make it with each request.
        """
        framing = b""
        for name, value in self._fields:
            if name.lower() in (b"content-length", b"transfer-encoding"):
                framing = b"%b: %b\r\n" % (name, value)
        self._skips_body = False
        self._http = httptools.HttpRequestParser(self)
        self._http.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % framing)

    # What httptools calls

    def on_url(self, url: bytes) -> None:
        """Note a part of the target."""
        if self._head is None:
            self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note a header. Those after a chunked body are ignored."""
        if self._head is None:
            self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        """Note the end of a head."""
        if self._head is None:
            self._skips_body = self._http.should_upgrade()
            self._head = self._checked_head()
            self._size = 0

    def on_body(self, body: bytes) -> None:
        """Note a part of the body."""
        self._size = 0
        self._body.append(body)

    def on_message_begin(self) -> None:
        """Refuse a second request in one piece."""
        if self._complete:
            raise Invalid("the request does not end where its piece ends")

    def on_message_complete(self) -> None:
        """Note the end of the request."""
        self._complete = not self._skips_body

    def _checked_head(self) -> Head:
        """Return the head. Raises Invalid for what httptools permits, but RFC 9112 does not."""
        verb, version = self._http.get_method(), self._http.get_http_version()
        if version not in _VERSIONS or self._line != b"%b %b HTTP/%b\r\n" % (verb, self._target, version.encode()):
            raise Invalid("illegal request line")
        pairs = [(name.decode("ascii").lower(), value.decode("latin-1").strip(" \t")) for name, value in self._fields]
        headers, is_modern = dict(pairs), version == "1.1"
        if len(headers) < len(pairs):
            headers = _joined(pairs)
        if sum(name == "host" for name, _ in pairs) != 1 if "host" in headers else is_modern:
            raise Invalid("not one header Host")
        coding = headers.get("transfer-encoding")
        if coding is None:
            self.left = int(headers.get("content-length", 0))
        elif coding.lower() != "chunked" or not is_modern:
            raise Invalid("unknown transfer coding")
        persists = is_modern and verb != b"CONNECT" and self._http.should_keep_alive()
        target = self._target.decode("ascii")
        if target.lower().startswith(_SCHEMES):
            headers["host"], target = _host_and_target(target)
        return Head(verb.decode("ascii"), target, headers, persists, is_modern)


def _host_and_target(target: str) -> tuple[str, str]:
    """Return the host of a target that is a whole URL, and the rest (RFC 9112, section 3.2.2). Raises Invalid."""
    try:
        url = urllib.parse.urlsplit(target)
    except ValueError as error:
        raise Invalid(str(error)) from error
    if not url.netloc or "@" in url.netloc:
        raise Invalid("illegal host in the target")
    return url.netloc, (url.path or "/") + (f"?{url.query}" if url.query else "")


def _joined(pairs: list[tuple[str, str]]) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return {name: ", ".join(each) for name, each in values.items()}
