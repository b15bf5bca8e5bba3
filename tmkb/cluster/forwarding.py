"""Forwards requests to the replica that has their session or task, and streams the response back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx2

from tmkb.cluster.directory import Place
from tmkb.transport import http
from tmkb.transport.streams import EVENTS, Response

if TYPE_CHECKING:
    from tmkb.schema.model import Limits

HEADER = "tmkb-forwarded-to"  # the id of the replica that a request was forwarded to, which does not forward it again
MISDIRECTED = 421  # the response of another replica at the address: RFC 9110, section 15.5.20
_CONNECT_SECONDS = 1.0
_KEEPALIVE_SECONDS = 10.0  # less than the other side waits for a request
# Of one connection (RFC 9110, section 7.6.1), or set again by the server that sends the response
_HOP_BY_HOP = {
    "connection",
    "content-length",
    "date",
    "expect",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}


class ForwardedResponse(Response):
    """A response that another replica sends. It is read as fast as the client reads."""

    def __init__(self, upstream: httpx2.Response, max_unsent: int) -> None:
        """Start to read ``upstream``, whose head has arrived."""
        super().__init__(max_unsent, {})
        kept = {name: value for name, value in upstream.headers.items() if name not in _HOP_BY_HOP}
        if "content-length" in upstream.headers:
            kept["content-length"] = upstream.headers["content-length"]
        self._start(upstream.status_code, kept)
        self.taken = asyncio.Event()
        self.reader = asyncio.create_task(self._read(upstream))

    def take(self) -> bytes:
        """Remove and return the unsent part of the body."""
        self.taken.set()
        return super().take()

    def end(self) -> None:
        """Complete the body, and read no more."""
        super().end()
        if self.reader is not asyncio.current_task():
            self.reader.cancel()

    async def _read(self, upstream: httpx2.Response) -> None:
        try:
            async for chunk in upstream.aiter_raw():
                self.taken.clear()
                self.write(chunk)
                while self.unsent:
                    await self.taken.wait()
            self.end()
        except httpx2.HTTPError:
            if self.headers.get("content-type") == EVENTS["content-type"]:
                self.end()  # the client resumes the stream
            else:
                self.abort()
        finally:
            await upstream.aclose()


class Forwarder:
    """Sends requests to other replicas, over connections that it keeps for a while."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.clients: dict[str, httpx2.AsyncClient] = {}  # by address

    async def send(self, request: http.Request, place: Place) -> Response:
        """Return the response of the replica at ``place``, as soon as its head has arrived.

        Raises:
            ConnectionRefusedError: if that replica has certainly not received the request.
            TimeoutError: if there is no connection for another reason, so it may live.
            ConnectionResetError: if it was lost, or did not respond, after it may have received the request.
        """
        client = self._client(place.address)
        headers = [(name, value) for name, value in request.headers.items() if name not in _HOP_BY_HOP]
        encoded = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in [*headers, (HEADER, place.owner)]
        ]
        host = "localhost" if place.address.startswith("/") else place.address
        message = httpx2.Request(
            request.verb, f"http://{host}{http.PATH}", headers=encoded, content=request.body or None
        )
        try:
            upstream = await client.send(message, stream=True)
        except httpx2.ConnectTimeout as error:
            raise TimeoutError from error
        except (httpx2.ConnectError, OSError) as error:
            raise (ConnectionRefusedError if _is_refused(error) else TimeoutError) from error
        except httpx2.HTTPError as error:
            raise ConnectionResetError from error
        if upstream.status_code == MISDIRECTED:
            await upstream.aclose()
            raise ConnectionRefusedError
        return ForwardedResponse(upstream, self.limits["stream_bytes"])

    async def close(self) -> None:
        """Close all connections."""
        for client in self.clients.values():
            await client.aclose()

    async def forget(self, address: str) -> None:
        """Close the connections to a replica that has ended."""
        if (client := self.clients.pop(address, None)) is not None:
            await client.aclose()

    def _client(self, address: str) -> httpx2.AsyncClient:
        if address not in self.clients:
            # A response begins, or becomes a stream that is kept alive, after this number of seconds.
            quiet = self.limits["quiet_seconds"]
            timeout = httpx2.Timeout(
                self.limits["request_seconds"], connect=_CONNECT_SECONDS, read=2 * quiet, pool=None
            )
            limits = httpx2.Limits(max_connections=None, keepalive_expiry=_KEEPALIVE_SECONDS)
            uds = address if address.startswith("/") else None
            transport = httpx2.AsyncHTTPTransport(uds=uds, limits=limits, trust_env=False)
            self.clients[address] = httpx2.AsyncClient(transport=transport, timeout=timeout, trust_env=False)
        return self.clients[address]


def _is_refused(error: BaseException) -> bool:
    """Return whether nobody listens at any address, since each attempt was refused."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_refused, error.exceptions))
    if isinstance(error, (ConnectionRefusedError, FileNotFoundError)):
        return True
    cause = error.__cause__ or error.__context__
    return cause is not None and _is_refused(cause)
