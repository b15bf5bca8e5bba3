"""Check a server over HTTP: that it is reachable, private to this machine, and answers clients of both eras."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

from tmkb.conformance.client import Client, ClientError
from tmkb.doctor.finding import Finding, Topic
from tmkb.schema import installation
from tmkb.schema.model import Spec
from tmkb.transport import guard

_STRANGER = "https://stranger.example"  # the origin of another website
_LIMIT = 1 << 20  # bytes of a response
_PROBED = 2.0  # seconds to connect to another address of this machine
_OUTSIDE = ("192.0.2.1", "2001:db8::1")  # for documentation (RFC 5737, RFC 3849); nothing is sent there
_EXTRA = "replay"


def web(url: str, headers: Mapping[str, str], spec: Spec, timeout: float, topic: Topic) -> Iterator[Finding]:
    """Check the server at ``url``.

    Args:
        url: of the endpoint, such as ``http://127.0.0.1:8321/mcp``.
        headers: of each request.
        spec: the revisions that clients speak.
        timeout: seconds for one answer.
        topic: of the findings.
    """
    host, port = _address(url)
    if not host:
        yield topic.found("url-invalid", url=url)
        return
    try:
        socket.create_connection((host, port), timeout).close()
    except OSError as error:
        id_ = "http-refused" if isinstance(error, ConnectionRefusedError) else "http-unreachable"
        yield topic.found(id_, host=host, port=port, reason=error.strerror or error)
        return
    try:
        status = _status(url, headers, timeout)
        if status in (401, 403):
            has_token = status == 401 and "authorization" in map(str.lower, headers)
            yield topic.found("http-token-refused" if has_token else "http-unauthorized", status=status)
            return
        if status in (404, 405) or status >= 500:
            yield topic.found("http-not-mcp", status=status)
            return
        status = _status(url, {**headers, "Origin": _STRANGER}, timeout)
    except ssl.SSLError as error:
        id_ = "http-unreachable" if isinstance(error, ssl.SSLCertVerificationError) else "http-not-encrypted"
        yield topic.found(id_, host=host, port=port, reason=error.reason or error)
        return
    except (OSError, http.client.HTTPException, ValueError) as error:
        yield topic.found("http-other-program", host=host, port=port, reason=str(error) or type(error).__name__)
        return
    if status != 403:
        yield topic.found("http-origin-accepted", status=status, origin=_STRANGER)
    if guard.is_loopback(host) and (exposed := [each for each in _addresses() if _listens(each, port)]):
        yield topic.found("http-exposed", addresses=", ".join(exposed), port=port)
    yield from _eras(url, headers, spec, timeout, topic)


def _eras(url: str, headers: Mapping[str, str], spec: Spec, timeout: float, topic: Topic) -> Iterator[Finding]:
    """Open a connection with the newest revision of each era."""
    try:
        from tmkb.conformance.http import Http
    except ImportError:
        yield topic.found("http-not-checked", extra=_EXTRA, command=installation.command(_EXTRA))
        return
    stateless = [name for name, rules in spec["revisions"].items() if "request_metadata" in rules]
    handshakes = [name for name in spec["revisions"] if name not in stateless]
    opened = []
    for revision in (max(stateless), max(handshakes)):
        client = Client(Http(url, spec, timeout, [*headers.items()]), spec, revision)
        try:
            client.open()
            client.tools()
            opened.append(revision)
        except ClientError as error:
            yield topic.found("http-era-refused", revision=revision, reason=error.message)
        finally:
            client.close()
    if opened:
        yield topic.found("http-answers", revisions=", ".join(sorted(opened)))


def _address(url: str) -> tuple[str, int]:
    """Return host and port of an HTTP server; an empty host if the URL is not that of one."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return "", 0
    return (host, port) if parts.scheme in ("http", "https") else ("", 0)


def _status(url: str, headers: Mapping[str, str], timeout: float) -> int:
    """Return the status of the response to a ping. Raises OSError and HTTPException."""
    parts = urllib.parse.urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    with contextlib.closing(kind(parts.hostname or "", parts.port, timeout=timeout)) as connection:
        path = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        connection.request("POST", path, body, {**usual, **headers})
        response = connection.getresponse()
        response.read(_LIMIT)
        return response.status


def _addresses() -> list[str]:
    """Return the addresses of this machine that other machines can use."""
    found = []
    for family, outside in zip((socket.AF_INET, socket.AF_INET6), _OUTSIDE, strict=True):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((outside, 9))  # chooses a route; a datagram socket sends nothing
            address: Any = probe.getsockname()[0]
            found.append(str(address))
    return [each for each in found if not guard.is_loopback(each)]


def _listens(address: str, port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection((address, port), _PROBED).close()
        return True
    return False
