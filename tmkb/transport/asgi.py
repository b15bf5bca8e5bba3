"""The ASGI application around `http.py`. `listener.py` runs it with uvicorn; other programs can mount it.

Specification: https://asgi.readthedocs.io/en/latest/specs/www.html
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

from tmkb.errors import ProtocolError
from tmkb.protocol.caller import Caller
from tmkb.transport import hook
from tmkb.transport.guard import Guard
from tmkb.transport.http import Endpoint, Request
from tmkb.transport.probes import Condition
from tmkb.transport.streams import Response

if TYPE_CHECKING:
    from tmkb.protocol.budget import Budget
    from tmkb.transport.connections import Protocol
    from tmkb.transport.loop import Updates
    from tmkb.transport.quotas import Account

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]

_CHUNK = 65536
_PROBE = 0.1  # seconds between writes to a half-closed connection


class _OtherConnection:
    """The interface of `connections.Protocol` for other ASGI servers, which manage connections themselves."""

    half_closed = False
    unfinished = False
    on_half_close: Callable[[], object] | None = None

    def read_body(self) -> None:
        pass

    def discard_input(self) -> None:
        pass

    def abort(self) -> None:
        pass

    def waiting(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def assign(self, principal: str) -> None:
        pass

    def release_when_sent(self, budget: Budget, size: int) -> None:
        budget.release(size)


Connection: TypeAlias = "Protocol | _OtherConnection"


class Application:
    """An ASGI application that serves an endpoint, and runs its operations between requests.

    It needs no lifespan events. Its path is ``/mcp`` below the path where it is mounted. It is not thread-safe: all
    calls have to come from one event loop.
    """

    def __init__(self, endpoint: Endpoint, updates: Updates | None = None) -> None:
        """``updates``: reloaded snapshots."""
        self.endpoint = endpoint
        self.log = endpoint.runtime.log
        self.updates = updates
        self.rescheduled = asyncio.Event()  # an operation may be due earlier
        self.worker: asyncio.Task[None] | None = None  # while there are operations
        self.body_timeouts: set[asyncio.Timeout] = set()  # of incomplete request bodies
        self.listening: dict[Response, Request] = {}  # streams for notifications
        self.draining = False
        self.ending = False

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Handle one request, or the startup and shutdown of the server."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            query, peer = scope.get("query_string", b"").decode("latin-1"), (scope.get("client") or ("",))[0]
            request = Request(scope["method"], path, _headers(scope), b"", query, peer)
            await self.answer(request, receive, send, _OtherConnection())

    def use(self, guard: Guard) -> None:
        """Admit requests by ``guard`` from now on."""
        before, self.endpoint.guard = self.endpoint.guard, guard
        if guard.access is not None:
            if before.access is not None:
                guard.access.replace(before.access)
            guard.access.start()
        for response, request in [*self.listening.items()]:
            if not self._still_admits(request, response.caller):
                self.endpoint.on_disconnect(response)

    def _still_admits(self, request: Request, caller: Caller) -> bool:
        """Return whether the token of ``request`` still has the rights of ``caller``."""
        try:
            return self.endpoint.guard.admit(request.headers) == caller
        except ProtocolError as error:
            return error.error == "keys_unavailable"

    def drain(self) -> None:
        """Report that the server is not ready, and end each connection after its next response."""
        self.draining = True
        self.endpoint.runtime.conditions["draining"] = Condition(ProtocolError("shut_down"), blocks=True)

    async def start(self) -> None:
        """Prepare to serve, in the event loop."""

    async def stop(self) -> None:
        """Release what `start` has opened."""

    def shutdown(self) -> None:
        """End all streams and reject incomplete requests, so that the server does not wait for them."""
        self.ending = True
        for timeout in self.body_timeouts:
            if not timeout.expired():
                timeout.reschedule(asyncio.get_running_loop().time())
        self.endpoint.shutdown()
        self.log.flush()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        if self.updates is not None:
            threading.Thread(
                target=self._read_updates, args=(self.updates, asyncio.get_running_loop()), daemon=True
            ).start()
        if self.endpoint.guard.access is not None:
            self.endpoint.guard.access.start()
        await self.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.stop()
        if self.worker is not None:
            self.worker.cancel()
        await send({"type": "lifespan.shutdown.complete"})

    def _schedule_operations(self) -> None:
        """Start the worker task if there are operations, or let it check when the next one is due."""
        self.rescheduled.set()
        if self.endpoint.due() is None:
            return
        task = self.worker
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            self.rescheduled = asyncio.Event()
            self.worker = asyncio.create_task(self._run_operations())

    async def _run_operations(self) -> None:
        while (due := self.endpoint.due()) is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.rescheduled.wait(), due)
            self.rescheduled.clear()
            self.endpoint.work()
            self.log.flush()
            await asyncio.sleep(0)

    def _read_updates(self, updates: Updates, loop: asyncio.AbstractEventLoop) -> None:
        """Read updates in a thread, because not every event loop can wait for a pipe. Apply them in the loop."""
        chunk = b"."
        while chunk and not loop.is_closed():
            chunk = os.read(updates.fd, _CHUNK)
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._apply_update, updates, chunk)

    def _apply_update(self, updates: Updates, chunk: bytes) -> None:
        self.endpoint.dispatch(updates.feed(chunk))
        self.log.flush()
        self._schedule_operations()

    def can_answer_at_once(self, request: Request) -> bool:
        """Return whether `answer_at_once` can be called: nothing has to be asked elsewhere about ``request``."""
        if type(self).respond is not Application.respond or self.endpoint.guard.access is not None:
            return False
        return not self._is_for_hook(request)

    def answer_at_once(self, request: Request, connection: Protocol) -> tuple[Response, contextlib.ExitStack]:
        """Return the response to a request whose body, if any, has arrived.

        Returns:
            The response, which may still grow, and what `complete` needs.
        """
        counted = contextlib.ExitStack()
        try:
            response = self._start_at_once(request, connection, counted)
        except ProtocolError as error:
            response = self.endpoint.reject(request, error)
        self._after_start()
        return response, counted

    def take(self, response: Response, connection: Protocol) -> tuple[dict[str, str], bytes, int]:
        """Return the headers and the body of a response that has ended, and how much of its budget they reserve."""
        body, budget = response.take(), response.budget
        if response.account is not None:
            response.account.add_sent(len(body))
        size = len(body) if budget is not None and budget.fits(len(body)) else 0
        if budget is not None:
            budget.reserve(size)
        return self._complete_headers(response, connection), body, size

    async def answer(self, request: Request, receive: Receive, send: Send, connection: Connection) -> None:
        """Handle one request."""
        with contextlib.ExitStack() as counted:
            try:
                response = await self._start(request, receive, connection, counted)
            except ProtocolError as error:
                response = self.endpoint.reject(request, error)
            except ConnectionError:
                return
            except asyncio.CancelledError:
                response = self._rejection_at_the_end(request)
            if "transfer-encoding" in request.headers and "content-length" in request.headers:  # RFC 9112, section 6.1
                response.headers["connection"] = "close"
            self._after_start()
            await self.complete(request, response, counted, receive, send, connection)

    async def complete(
        self,
        request: Request,
        response: Response,
        counted: contextlib.ExitStack,
        receive: Receive,
        send: Send,
        connection: Connection,
    ) -> None:
        """Send ``response`` until it ends. While ``counted`` is open, it counts as running for its principal."""
        with counted:
            if response.ended:
                await self._send_response(request, response, send, connection)
                return
            self._note_listening(request, response, counted, connection)
            watches = (_watch_disconnect(receive, response), self._end_in_time(request, response))
            tasks = [asyncio.create_task(watch) for watch in watches]
            connection.on_half_close = lambda: tasks.append(asyncio.create_task(self._probe(response)))
            if connection.half_closed:
                connection.on_half_close()
            try:
                await self._send_response(request, response, send, connection)
            finally:
                for task in tasks:
                    task.cancel()
                self.listening.pop(response, None)
                self.endpoint.on_disconnect(response)

    def _after_start(self) -> None:
        self.log.flush()
        self._schedule_operations()

    def _note_listening(
        self, request: Request, response: Response, counted: contextlib.ExitStack, connection: Connection
    ) -> None:
        """If ``response`` is a stream for notifications, end it with its token, and do not count it as running.

        It need not end, so it is the last response of its connection.
        """
        if self.endpoint.is_listening(request, response):
            counted.close()
            self.listening[response] = request
            connection.discard_input()

    async def _start(
        self, request: Request, receive: Receive, connection: Connection, counted: contextlib.ExitStack
    ) -> Response:
        """Read the body of a request, if it is needed, and pass the request to the endpoint.

        Raises:
            ProtocolError: if its principal exceeds a quota, or the body is too slow or too large.
            ConnectionError: if the client has disconnected.
        """
        if self._is_for_hook(request):
            return await self._receive_hook(request, receive, connection)
        try:
            if self.endpoint.guard.access is not None and self.endpoint.screen(request):
                with connection.waiting():
                    await self.endpoint.guard.prepare(request.headers)
            request = request._replace(caller=self.endpoint.admit(request))
        except ProtocolError as error:
            return self._refuse(request, error, connection)
        account = self._charge(request, connection, counted)
        if account is not None and self.endpoint.wants_body(request):
            connection.read_body()
            request = _with_body(request, await self._read_body(request, receive), account)
        response = await self.respond(request)
        response.account = account
        return response

    def _start_at_once(self, request: Request, connection: Protocol, counted: contextlib.ExitStack) -> Response:
        """Do as `_start`, for a request whose body, if any, has arrived."""
        try:
            request = request._replace(caller=self.endpoint.admit(request))
        except ProtocolError as error:
            return self._refuse(request, error, connection)
        account = self._charge(request, connection, counted)
        if account is not None and self.endpoint.wants_body(request):
            request = _with_body(request, self._checked_body(request, connection), account)
        response = self.endpoint.handle(request)
        response.account = account
        return response

    def _refuse(self, request: Request, error: ProtocolError, connection: Connection) -> Response:
        """Return the response to a request that is not admitted. Its body is not read."""
        if not _has_body(request.headers):
            connection.read_body()
        return self.endpoint.reject(request, error, closing=False)

    def _charge(self, request: Request, connection: Connection, counted: contextlib.ExitStack) -> Account | None:
        """Count an admitted request, and return the account that it counts for. Raises ProtocolError."""
        assert request.caller is not None
        account, wants_body = self.endpoint.account(request), self.endpoint.wants_body(request)
        if account is not None:
            connection.assign(request.caller.principal)
            size, limit = _declared_size(request.headers), self.endpoint.limits["message_bytes"]
            account.add(1, size if wants_body and size is not None and size <= limit else 0)
        if account is not None and wants_body:
            account.begin()
            counted.callback(account.end)
        elif not _has_body(request.headers):
            connection.read_body()
        return account

    def _checked_body(self, request: Request, connection: Protocol) -> bytes | None:
        """Return the body, which has arrived; None if it is too large. Raises ProtocolError, as `_read_body`."""
        assert request.caller is not None
        size, limit = _declared_size(request.headers) or 0, self.endpoint.limits["message_bytes"]
        if size > limit:
            return None
        budget = self.endpoint.runtime.budget(request.caller.principal)
        if not budget.fits(size):
            raise ProtocolError("too_much_in_transit", limit=budget.limit)
        return connection.take_body()

    async def respond(self, request: Request) -> Response:
        """Return the response to a complete request that the guard admits."""
        return self.endpoint.handle(request)

    def on_hook(self) -> None:
        """Do what a webhook asks for elsewhere. One process has nobody else to tell."""

    def _is_for_hook(self, request: Request) -> bool:
        return request.path == hook.PATH and self.updates is not None and self.updates.hook is not None

    async def _receive_hook(self, request: Request, receive: Receive, connection: Connection) -> Response:
        """Return the response to a webhook. Raises as `_start`."""
        assert self.updates is not None and self.updates.hook is not None
        if request.verb != "POST":
            raise ProtocolError("no_such_verb", verb=request.verb, permitted="POST")
        request = request._replace(caller=Caller(hook.PRINCIPAL))
        account = self.endpoint.accounts.of(hook.PRINCIPAL)
        account.add(1)
        connection.read_body()
        body = await self._read_body(request, receive)
        if body is None:
            raise ProtocolError("message_too_large", limit=self.endpoint.limits["message_bytes"])
        self.updates.hook.receive(request.headers, body)
        self.log.write("pull_requested")
        self.on_hook()
        response = Response(self.endpoint.limits["stream_bytes"], {})
        response.complete(202, {"content-type": "text/plain"}, b"ok\n")
        return response

    async def _probe(self, response: Response) -> None:
        """Write to a half-closed connection until the response ends, to notice whether the client has closed it.

        If so, its system answers the first write with a reset, and the next write fails.
        """
        while not response.ended:
            await asyncio.sleep(_PROBE)
            self.endpoint.on_idle(response)

    async def _end_in_time(self, request: Request, response: Response) -> None:
        """End ``response``, if it is a stream for notifications, when the token of its client expires."""
        expires = response.caller.expires
        if expires is not None and self.endpoint.is_listening(request, response):
            while (left := expires - time.time()) > 0:
                await asyncio.sleep(left)
            self.endpoint.on_disconnect(response)

    def _timeout_error(self) -> ProtocolError:
        return ProtocolError("shut_down") if self.ending else ProtocolError("request_too_slow")

    async def _read_body(self, request: Request, receive: Receive) -> bytes | None:
        """Return the body, or None if it exceeds the size limit. While it is read, it counts against the memory budget.

        Raises:
            ProtocolError: if the body is too slow or exceeds the budget, or the server shuts down.
            ConnectionError: if the client has disconnected.
        """
        limit, body = self.endpoint.limits["message_bytes"], bytearray()
        if (_declared_size(request.headers) or 0) > limit:
            return None
        assert request.caller is not None
        budget = self.endpoint.runtime.budget(request.caller.principal)
        timeout = asyncio.timeout(0 if self.ending else self.endpoint.limits["request_seconds"])
        self.body_timeouts.add(timeout)
        try:
            async with timeout:
                while True:
                    event = await receive()
                    if event["type"] == "http.disconnect":
                        raise ConnectionError
                    chunk = event.get("body", b"")
                    if not budget.fits(len(chunk)):
                        raise ProtocolError("too_much_in_transit", limit=budget.limit)
                    budget.reserve(len(chunk))
                    body += chunk
                    if len(body) > limit:
                        return None
                    if not event.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise self._timeout_error() from None
        finally:
            self.body_timeouts.discard(timeout)
            budget.release(len(body))

    async def _send_response(self, request: Request, response: Response, send: Send, connection: Connection) -> None:
        """Send ``response``, or an error if the server ends before. Disconnects a client that does not read."""
        try:
            await self._send_parts(response, send, connection)
        except TimeoutError:
            connection.abort()
        except asyncio.CancelledError:
            if response.started:
                raise
            await self._send_response(request, self._rejection_at_the_end(request), send, connection)
        finally:
            response.take()  # releases its budget

    def _rejection_at_the_end(self, request: Request) -> Response:
        """Return the response to a request for which the server, which ends, waits no longer.

        Raises CancelledError if another reason cancelled the request.
        """
        if not self.ending:
            raise asyncio.CancelledError
        return self.endpoint.reject(request, ProtocolError("shut_down"))

    async def _send_parts(self, response: Response, send: Send, connection: Connection) -> None:
        """Send ``response`` as it grows. Raises TimeoutError if the client does not read."""
        changed, started = asyncio.Event(), False
        response.on_change = changed.set
        while True:
            if not (response.chunks or response.ended or (response.started and not started)):
                await self._wait(response, changed)
            changed.clear()
            if response.aborted:
                connection.abort()
                return
            if not response.started:
                continue
            if not started:
                started = True
                await self._send(send, self._start_event(response, connection))
                continue
            if await self._send_body(response, send, connection):
                return

    async def _send_body(self, response: Response, send: Send, connection: Connection) -> bool:
        """Send the next part of the body. It counts against the budget until the system has accepted it.

        Returns:
            Whether it was the last part.
        """
        ended, body, budget = response.ended, response.take(), response.budget
        if response.account is not None:
            response.account.add_sent(len(body))
        size = len(body) if budget is not None and budget.fits(len(body)) else 0
        if budget is not None:
            budget.reserve(size)
        try:
            await response.settle()
            if response.aborted:
                connection.abort()
                return True
            await self._send(send, {"type": "http.response.body", "body": body, "more_body": not ended})
        finally:
            if budget is not None:
                connection.release_when_sent(budget, size)
        return ended

    async def _wait(self, response: Response, changed: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(self.endpoint.limits["quiet_seconds"]):
                await changed.wait()
        except TimeoutError:
            self.endpoint.on_idle(response)

    async def _send(self, send: Send, event: Event) -> None:
        """Send ``event``. Raises TimeoutError if the client does not read."""
        async with asyncio.timeout(self.endpoint.limits["request_seconds"]):
            await send(event)

    def _start_event(self, response: Response, connection: Connection) -> Event:
        """Return the event that starts a response."""
        headers = self._complete_headers(response, connection)
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        return {"type": "http.response.start", "status": response.status, "headers": encoded}

    def _complete_headers(self, response: Response, connection: Connection) -> dict[str, str]:
        """Return the headers of ``response``.

        The connection ends after a request that was not read completely, and while the server drains.
        """
        headers = {**response.headers}
        if connection.unfinished or self.draining:
            headers["connection"] = "close"
        if response.status in (429, 503):
            headers.setdefault("retry-after", str(self.endpoint.limits["busy_seconds"]))
        return headers


async def _watch_disconnect(receive: Receive, response: Response) -> None:
    """Abort ``response`` when its client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
    response.aborted = True
    response.end()


def _headers(scope: Event) -> dict[str, str]:
    """Return headers with names in lower case; repeated headers are joined (RFC 9110, section 5.2)."""
    headers: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
    return {name: ", ".join(values) for name, values in headers.items()}


def _with_body(request: Request, body: bytes | None, account: Account) -> Request:
    """Return ``request`` with its body. Counts the body for ``account``, if the request did not declare its size."""
    if body is not None and _declared_size(request.headers) is None:
        account.add(0, len(body))
    return request._replace(body=body)


def _declared_size(headers: Mapping[str, str]) -> int | None:
    """Return the size of the body in bytes; None if the request does not declare it."""
    length = headers.get("content-length", "")
    return int(length) if length.isdecimal() and "transfer-encoding" not in headers else None


def _has_body(headers: Mapping[str, str]) -> bool:
    """Return whether a request has a body (RFC 9112, section 6.3)."""
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
