"""Fetch the metadata and the keys of an issuer.

Specification: RFC 8414, section 3; OpenID Connect Discovery 1.0, section 4; RFC 7517.
"""

from __future__ import annotations

import functools
import http.client
import io
import json
import re
import socket
import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from tmkb import __version__
from tmkb.schema.model import Limits

_OAUTH, _OPENID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
_SECURE = re.compile(r"https://[^\s/?#@]+(/\S*)?|http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?(/\S*)?")
_CHUNK = 65536
_HEADERS = {"Accept": "application/json", "User-Agent": f"tmkb/{__version__}"}


class FetchError(Exception):
    """An issuer gave no usable document. Its text is the reason."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which could lead to a host or a scheme that the access file does not name."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Input(io.RawIOBase):
    """What a socket receives until a moment. A timeout of the socket would begin again with each byte."""

    def __init__(self, connected: socket.socket, ends: float) -> None:
        self._socket = connected
        self._raw: Any = connected.makefile("rb", buffering=0)
        self._ends = ends

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Any:
        self._socket.settimeout(_left(self._ends))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """A response that is complete before the timeout of its connection, or raises FetchError."""

    def __init__(self, sock: socket.socket, *args: Any, ends: float, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_Input(sock, ends))


class _Connection(http.client.HTTPConnection):
    def __init__(self, host: str, timeout: float, **options: Any) -> None:
        super().__init__(host, timeout=timeout, **options)
        self.response_class = functools.partial(_Response, ends=time.monotonic() + timeout)  # type: ignore[assignment] # mypy takes it for a class


class _SecureConnection(_Connection, http.client.HTTPSConnection):
    pass


class _Handler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_Connection, req)  # type: ignore[arg-type]


class _SecureHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_SecureConnection, req)  # type: ignore[arg-type]


_opener = urllib.request.build_opener(_NoRedirects, _Handler, _SecureHandler)


def keys(issuer: str, jwks: str | None, limits: Limits) -> list[Any]:
    """Return the keys of ``issuer``, each a JWK as decoded JSON of any type.

    ``jwks``: their URL; None to look it up in the metadata of the issuer. Raises FetchError.
    """
    ends = time.monotonic() + limits["keys_timeout_seconds"]
    found = _document(jwks or _address(issuer, limits, ends), limits, ends).get("keys")
    if not isinstance(found, list):
        raise FetchError("the key set has no list `keys`")
    return found


def metadata_urls(issuer: str) -> list[str]:
    """Return the URLs where the metadata of ``issuer`` can be, in the order of the MCP specification."""
    parts = urlsplit(issuer)
    base, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    inserted = [f"{base}{_OAUTH}{path}", f"{base}{_OPENID}{path}"]
    return [*inserted, f"{base}{path}{_OPENID}"] if path else inserted


def _address(issuer: str, limits: Limits, ends: float) -> str:
    """Return the URL of the keys in the metadata of ``issuer``."""
    reasons = []
    for url in metadata_urls(issuer):
        try:
            return _jwks_uri(_document(url, limits, ends), issuer, url)
        except FetchError as error:
            reasons.append(str(error))
    raise FetchError("; ".join(reasons))


def _jwks_uri(metadata: dict[str, Any], issuer: str, url: str) -> str:
    """Return the URL of the keys. ``url``: of ``metadata``, which has to name the issuer itself."""
    if metadata.get("issuer") != issuer:
        raise FetchError(f"{url} is the metadata of another issuer")
    address = metadata.get("jwks_uri")
    if not isinstance(address, str) or not _SECURE.fullmatch(address):
        raise FetchError(f"{url} has no `jwks_uri` with https://")
    if address.startswith("http:") and not issuer.startswith("http:"):
        raise FetchError(f"{url} has a `jwks_uri` with http://")
    return address


def _document(url: str, limits: Limits, ends: float) -> dict[str, Any]:
    """Return the JSON object at ``url``. Raises FetchError, at the time ``ends`` at the latest."""
    body, limit = b"", limits["keys_bytes"]
    try:
        with _opener.open(urllib.request.Request(url, headers=_HEADERS), timeout=_left(ends)) as answer:
            while chunk := answer.read1(_CHUNK):
                body += chunk
                if len(body) > limit:
                    raise FetchError(f"{url} has more than {limit} bytes")
                _left(ends)
        value = json.loads(body)
    except urllib.error.HTTPError as error:
        error.close()
        raise FetchError(f"{url}: the status is {error.code}") from error
    except (OSError, ValueError, RecursionError, http.client.HTTPException) as error:
        raise FetchError(f"{url}: {getattr(error, 'reason', error)}") from error
    if not isinstance(value, dict):
        raise FetchError(f"{url} is no JSON object")
    return value


def _left(ends: float) -> float:
    if (left := ends - time.monotonic()) <= 0:
        raise FetchError("it took too long")
    return left
