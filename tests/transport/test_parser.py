"""The parser of HTTP requests: events for bytes in pieces of any size, and what it refuses."""

import pytest

pytest.importorskip("httptools")

from tmkb.transport.parser import END, Head, Invalid, Parser

MAX = 1000
HOST = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
NEXT = b"GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n"
SIZED = HOST + b"Content-Length: 5\r\n\r\nhello"
CHUNKED = HOST + b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nX-Last: 1\r\n\r\n"
OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAB\r\n"


def events(*pieces):
    """Return the events for bytes that arrive in these pieces; the parts of each body are joined."""
    parser, found = Parser(MAX), []
    for piece in pieces:
        parser.receive(piece)
        while (event := parser.next_event()) is not None:
            if isinstance(event, bytes) and isinstance(found[-1], bytes):
                found[-1] += event
            else:
                found.append(event)
    return found


def targets(found):
    return [event.target for event in found if isinstance(event, Head)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 50, 10_000])
@pytest.mark.parametrize(
    "request_",
    [
        SIZED,
        CHUNKED,
        SIZED.replace(b"Host", OFFER + b"Host"),
        CHUNKED.replace(b"Host", OFFER + b"Host"),
        SIZED.replace(b"hello", b"\r\n\r\nx"),
        CHUNKED.replace(b"hel\r", b"\n\r\n\r"),
    ],
    ids=["sized", "chunked", "offer", "offer-chunked", "lines", "lines-chunked"],
)
def test_requests_follow_each_other_in_pieces_of_any_size(request_, size):
    data = request_ + NEXT + request_
    found = events(*(data[start : start + size] for start in range(0, len(data), size)))

    assert targets(found) == ["/mcp", "/next", "/mcp"]
    assert [type(event).__name__ for event in found] == ["Head", "bytes", "End", "Head", "End", "Head", "bytes", "End"]
    assert found[1] == found[6]
    assert len(found[1]) == 5


@pytest.mark.parametrize("size", [1, 2, 3, 10_000])
def test_empty_lines_before_a_request_are_ignored(size):
    data = b"\r\n" + SIZED + b"\r\n\r\n" + NEXT + b"\r\n"
    found = events(*(data[start : start + size] for start in range(0, len(data), size)))

    assert targets(found) == ["/mcp", "/next"]


@pytest.mark.parametrize(
    ("target", "host", "path"),
    [
        (b"http://localhost:80/a?b=c", "localhost:80", "/a?b=c"),
        (b"HTTPS://evil.example", "evil.example", "/"),
        (b"http://[::1]?a", "[::1]", "/?a"),
        (b"/http://evil.example", "x", "/http://evil.example"),
    ],
)
def test_the_host_in_a_target_replaces_the_header(target, host, path):
    (head, _) = events(b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % target)

    assert (head.headers["host"], head.target) == (host, path)


def test_nothing_after_a_head_is_parsed_before_the_next_call():
    parser = Parser(MAX)
    parser.receive(SIZED + b"\x00")
    assert parser.next_event().verb == "POST"

    assert (parser.left, parser.has_whole_body, parser.in_body, parser.has_data) == (5, True, True, True)
    assert (parser.next_event(), parser.next_event()) == (b"hello", END)
    assert (parser.in_body, parser.has_begun) == (False, True)
    with pytest.raises(Invalid):
        parser.next_event()


def test_bytes_are_released_when_they_are_parsed():
    parser = Parser(MAX)
    for data in (HOST, b"Content-Length: 5\r\n\r\nhe", b"llo"):
        parser.receive(data)
        while parser.next_event() is not None:
            pass
        assert parser.data == b""


def test_a_head_has_what_the_application_needs():
    (head, _) = events(b"GET /a%20b?c=%20 HTTP/1.1\r\nhOST:  x \t\r\nA: 1\r\na:\r\nA: \xe9 \r\n\r\n")

    assert head == Head("GET", "/a%20b?c=%20", {"host": "x", "a": "1, , \xe9"}, True, True)


@pytest.mark.parametrize(
    ("head", "persists", "is_modern"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", False, True),
        (b"GET / HTTP/1.0\r\n\r\n", False, False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", False, False),
        (b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", False, True),
    ],
    ids=["close", "old", "old-keep-alive", "connect"],
)
def test_some_requests_are_the_last_of_their_connection(head, persists, is_modern):
    found = events(head)

    assert (found[0].persists, found[0].is_modern, found[1:]) == (persists, is_modern, [END])


def test_headers_after_a_chunked_body_are_ignored():
    assert "x-last" not in events(CHUNKED)[0].headers


def lines(*more):
    return HOST + b"".join(line + b"\r\n" for line in more) + b"\r\n"


CHUNKS = b"Transfer-Encoding: chunked"
REFUSED = {
    "both lengths": lines(b"Content-Length: 5", CHUNKS),
    "both lengths, reversed": lines(CHUNKS, b"Content-Length: 5"),
    "lengths that differ": lines(b"Content-Length: 5", b"Content-Length: 6"),
    "equal lengths": lines(b"Content-Length: 5", b"Content-Length: 5"),
    "a list of lengths": lines(b"Content-Length: 5, 5"),
    "a length with a sign": lines(b"Content-Length: +5"),
    "a length with a blank": lines(b"Content-Length: 5 5"),
    "an empty length": lines(b"Content-Length:"),
    "a hexadecimal length": lines(b"Content-Length: 0x5"),
    "a length beyond 64 bits": lines(b"Content-Length: 99999999999999999999"),
    "another coding": lines(b"Transfer-Encoding: gzip, chunked"),
    "an unknown coding": lines(b"Transfer-Encoding: identity"),
    "chunks twice": lines(CHUNKS, CHUNKS),
    "an empty coding": lines(b"Transfer-Encoding:"),
    "a coding after a control character": lines(b"Transfer-Encoding:\x0bchunked"),
    "chunks in HTTP/1.0": b"POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
    "a continued line": lines(b"X: a", b" b"),
    "a continued first line": b"GET / HTTP/1.1\r\n Host: x\r\n\r\n",
    "bare line feeds": HOST.replace(b"\r", b"") + b"\n",
    "a bare line feed": HOST + b"X: a\nY: b\r\n\r\n",
    "a bare line feed at the end": HOST + b"\n",
    "a bare carriage return": lines(b"X: a\rY: b"),
    "a blank before the colon": lines(b"X : a"),
    "a NUL": lines(b"X: a\x00"),
    "a control character": lines(b"X: a\x01"),
    "no colon": lines(b"X"),
    "no name": lines(b": x"),
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": lines(b"Host: localhost"),
    "two blanks": HOST.replace(b"POST ", b"POST  ") + b"\r\n",
    "a tab in the first line": HOST.replace(b" HTTP", b"\tHTTP") + b"\r\n",
    "an empty first line with a bare line feed": b"\n" + NEXT,
    "an empty first line with a bare carriage return": b"\r" + NEXT,
    "a target with a user": NEXT.replace(b"/next", b"http://x@localhost/next"),
    "a target without a host": NEXT.replace(b"/next", b"http:///next"),
    "a target with an illegal host": NEXT.replace(b"/next", b"http://[::1/next"),
    "no version": b"GET /\r\n\r\n",
    "version 2": b"GET / HTTP/2.0\r\nHost: x\r\n\r\n",
    "version 1.2": b"GET / HTTP/1.2\r\nHost: x\r\n\r\n",
    "the start of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01",
    "an unknown verb": b"MAKE / HTTP/1.1\r\nHost: x\r\n\r\n",
    "other letters in the target": b"GET /\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n",
    "a head that is too large": lines(b"X: " + b"x" * MAX),
    "a head that becomes too large": HOST + b"X: " + b"x" * MAX,
    "a chunk after a bare line feed": lines(CHUNKS) + b"5\nhello\r\n0\r\n\r\n",
    "a bare line feed after a chunk": lines(CHUNKS) + b"5\r\nhello\n0\r\n\r\n",
    "a chunk that is longer": lines(CHUNKS) + b"4\r\nhello\r\n0\r\n\r\n",
    "a size with a sign": lines(CHUNKS) + b"-5\r\nhello\r\n0\r\n\r\n",
    "a size with a prefix": lines(CHUNKS) + b"0x5\r\nhello\r\n0\r\n\r\n",
    "a size beyond 64 bits": lines(CHUNKS) + b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    "no size": lines(CHUNKS) + b"\r\nhello\r\n0\r\n\r\n",
    "a bare line feed after the chunks": lines(CHUNKS) + b"0\r\n\n",
    "a length after the chunks": lines(CHUNKS) + b"0\r\nContent-Length: 5\r\n\r\n",
    "too much around chunks": lines(CHUNKS) + b"0;" + b"x" * MAX,
    "too much after the chunks": lines(CHUNKS) + b"0\r\n" + b"X: y\r\n" * MAX,
    "an offer with both lengths": HOST + OFFER + b"Content-Length: 5\r\n" + CHUNKS + b"\r\n\r\n",
}


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize("case", REFUSED)
def test_what_servers_could_read_in_two_ways_is_refused(case, size):
    data = REFUSED[case]
    with pytest.raises(Invalid):
        events(*(data[start : start + size] for start in range(0, len(data), size)))
