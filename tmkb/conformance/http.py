"""A client of MCP servers over Streamable HTTP, as a target for transcripts. Needs the extra ``replay``.

Specification: Basic / Transports / Streamable HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import httpx2

from tmkb.conformance import sse
from tmkb.conformance.targets import LATE, TIMEOUT, Target, answers, is_incomplete
from tmkb.errors import ProtocolError
from tmkb.protocol import headers, messages, negotiation
from tmkb.protocol.messages import Notification, Request
from tmkb.schema.model import Spec
from tmkb.schema.values import JsonObject, JsonValue

_GRACE = 0.1  # seconds for messages on other streams to arrive after the last response
_POLL = 0.5  # seconds between checks whether a request still has no response
_EVENTS = "text/event-stream"
_POST_HEADERS = {"Content-Type": "application/json", "Accept": f"application/json, {_EVENTS}"}


class Http(Target):
    """A client of the server at ``url``; it uses a session if the server starts one.

    The event loop runs during the methods only.
    """

    ordered = False

    def __init__(
        self, url: str, spec: Spec, timeout: float = TIMEOUT, extra_headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Create a client; the first request connects.

        ``spec`` names the headers of each revision and the arguments that are repeated as headers.
        ``timeout``: seconds for one turn. ``extra_headers``: sent with each request.
        """
        self.spec = spec
        self.timeout = timeout
        self.url = httpx2.URL(url)
        secure = self.url.scheme == "https"
        no_certificates = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # loading certificates takes time
        certificates = ssl.create_default_context() if secure else no_certificates
        self._client = httpx2.AsyncClient(
            timeout=timeout, trust_env=False, verify=certificates, headers=[*extra_headers]
        )
        self._runner = asyncio.Runner()
        self._received: asyncio.Queue[JsonValue] = asyncio.Queue()
        self._general: list[JsonValue] = []  # the messages that belong to no request
        self._faults: list[str] = []
        self._session: dict[str, str] = {}  # the headers that name it
        self._posts: dict[asyncio.Task[Any], object] = {}  # in flight → request id, if it is not part of the session
        self._listener: asyncio.Task[Any] | None = None  # reads the messages that belong to no request

    def check_connection(self) -> None:
        """Connect and disconnect. Raises OSError if the server cannot be reached."""
        socket.create_connection(
            (self.url.host, self.url.port or (443 if self.url.scheme == "https" else 80)), self.timeout
        ).close()

    def exchange(
        self, line: bytes, count: int, pending: str | int | None = None, silence: bool = True
    ) -> list[JsonValue]:
        """Send one line; return the messages that arrive until none is missing or the timeout ends."""
        return self._runner.run(self._exchange(line, count, pending))

    def learn(self, tools: Iterable[JsonObject]) -> None:
        """Note the tools of the server, whose schemas mark arguments that headers repeat."""
        named: Any = {str(each.get("name")): {"input": each.get("inputSchema")} for each in tools}
        self.spec = {**self.spec, "tools": named}

    def is_general(self, message: JsonValue) -> bool:
        """Return whether a message arrived on the general stream of the session."""
        return message in self._general

    def report(self) -> list[str]:
        """Return the faults since the last call: failed connections, and responses that are not JSON."""
        faults, self._faults = self._faults, []
        return faults

    def close(self) -> list[JsonValue]:
        """End the session and all streams; return the messages that still arrived."""
        with self._runner:
            self._runner.run(self._close())
            return self._take_received()

    async def _close(self) -> None:
        if self._session:
            with contextlib.suppress(httpx2.HTTPError):  # the server may have ended
                await self._client.delete(self.url, headers=self._session)
        for task in (*self._posts, *filter(None, [self._listener])):
            await _cancel(task)
        await self._client.aclose()

    async def _exchange(self, line: bytes, count: int, pending: str | int | None) -> list[JsonValue]:
        try:
            message: Any = messages.read(messages.decode(line))
        except ProtocolError:
            message = None
        if await self._disconnect_cancelled(message):
            return await self._receive(count, pending)
        sent = self._headers(message)
        post = asyncio.create_task(self._request("POST", sent, line))
        in_session = bool(self._session) and self._session.items() <= sent.items()
        self._posts[post] = None if in_session else getattr(message, "id", None)
        post.add_done_callback(self._posts.pop)
        if isinstance(message, Request) and negotiation.version_param(self.spec, message) is not None:
            await asyncio.wait([post], timeout=self.timeout)
            if post.done():
                await self._start_session(*post.result())
        received = await self._receive(count, pending)
        is_late = pending is not None and count and not any(answers(each, pending) for each in received)
        await asyncio.wait([post], timeout=LATE if is_late else _GRACE)
        return received + self._take_received()

    async def _request(
        self, method: str, sent: dict[str, str], body: bytes = b"", opened: asyncio.Event | None = None
    ) -> tuple[httpx2.Headers, str | None]:
        """Send a request and queue the messages of its response.

        ``opened`` is set when the headers of the response have arrived, or the request has failed.

        Returns:
            The headers of the response, and the protocol version that the server selected in it.
        """
        response_headers, status, version = httpx2.Headers(), "", None
        is_message = False
        try:
            async with self._client.stream(method, self.url, headers=sent, content=body) as response:
                response_headers, status = response.headers, f"{response.status_code} {response.reason_phrase}"
                if opened is not None:
                    opened.set()
                async for message in _messages(response):
                    if isinstance(message, dict) and isinstance(message.get("result"), dict):
                        version = message["result"].get("protocolVersion", version)
                    self._received.put_nowait(message)
                    self._general += [message] if method == "GET" else []
                    self.on_receive(message)
                    is_message = is_message or (isinstance(message, dict) and "jsonrpc" in message)
            if response.is_error and not is_message and method == "POST":
                self._faults.append(f"{self.url}: {status}")
        except (httpx2.HTTPError, ValueError) as error:
            if method == "POST":
                self._faults.append(f"{self.url}: {status or str(error) or type(error).__name__}")
        finally:
            if opened is not None:
                opened.set()
        return response_headers, version

    def _headers(self, message: Any) -> dict[str, str]:
        meta: Any = message.params.get("_meta") if isinstance(message, Request) else None
        revision = negotiation.describing(self.spec, meta)
        version = None if revision is None else meta.get(revision["request_metadata"]["revision"])
        if revision is None or (version is None and self._session):
            return _POST_HEADERS | self._session
        repeated = headers.for_request(self.spec, revision, message)
        return _POST_HEADERS | repeated | ({revision["http"]["version"]: version} if isinstance(version, str) else {})

    async def _start_session(self, response_headers: httpx2.Headers, version: str | None) -> None:
        """Join the session that the response to a handshake names, and open its general stream."""
        for name in self.spec["server"]["revisions"]:
            rules = self.spec["revisions"][name]["http"]
            if not self._session and "session" in rules and rules["session"] in response_headers:
                self._session = {rules["session"]: response_headers[rules["session"]]}
                if "version" in rules:
                    self._session[rules["version"]] = version or name
                opened = asyncio.Event()
                request = self._request("GET", {**self._session, "Accept": _EVENTS}, opened=opened)
                self._listener = asyncio.create_task(request)
                await opened.wait()

    async def _disconnect_cancelled(self, message: Any) -> bool:
        """Close the stream of the request that ``message`` cancels, if the request does not belong to the session."""
        id_ = message.params.get("requestId") if isinstance(message, Notification) else None
        post = next((post for post, request in self._posts.items() if request == id_ is not None), None)
        if post is None:
            return False
        await _cancel(post)
        return True

    async def _receive(self, count: int, pending: str | int | None) -> list[JsonValue]:
        received: list[JsonValue] = []
        deadline = time.monotonic() + self.timeout
        while is_incomplete([*filter(self.counts, received)], count, pending):
            left = deadline - time.monotonic() if self._posts else 0.0
            try:
                async with asyncio.timeout(max(_GRACE, min(left, _POLL))):
                    received.append(await self._received.get())
            except TimeoutError:
                if left <= 0:
                    break
        return received + self._take_received()

    def _take_received(self) -> list[JsonValue]:
        return [self._received.get_nowait() for _ in range(self._received.qsize())]


async def _messages(response: httpx2.Response) -> AsyncIterator[Any]:
    if response.headers.get("content-type", "").startswith(_EVENTS):
        events = sse.Events()
        async for chunk in response.aiter_bytes():
            for data in events.feed(chunk):
                yield json.loads(data.decode("utf-8", "replace"))
    elif text := await response.aread():
        yield json.loads(text)


async def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait([task])
