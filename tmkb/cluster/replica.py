"""One of several replicas: an ASGI application that handles or forwards requests about sessions and tasks.

A request about a session or a task is handled by the replica that has it in memory, its owner. If the owner has ended,
the replica that notices it becomes the owner and continues from the record. `docs/replicas.md` explains what survives.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakValueDictionary

from tmkb.cluster import records
from tmkb.cluster.directory import Directory, Held, Place, Unavailable
from tmkb.cluster.forwarding import HEADER, MISDIRECTED, Forwarder
from tmkb.cluster.journal import Journal
from tmkb.cluster.records import SessionRecord, TaskRecord
from tmkb.errors import ProtocolError
from tmkb.providers.operation import Notify
from tmkb.transport import hook
from tmkb.transport.asgi import Application
from tmkb.transport.http import Endpoint, Request, Session
from tmkb.transport.streams import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tmkb.protocol.caller import Caller
    from tmkb.protocol.effects import Sent
    from tmkb.protocol.tasks import Task, Tasks
    from tmkb.transport.addresses import Network
    from tmkb.transport.engine import Engine
    from tmkb.transport.guard import Guard
    from tmkb.transport.loop import Updates
    from tmkb.transport.streams import Stream

    class Server(Engine, Protocol):
        """A runtime whose tasks and notifications can be shared. `Runtime` explains each attribute."""

        tasks: Tasks | None
        publish: Callable[[Notify], None]

        def broadcast(self, notification: Notify) -> list[Sent]:
            """Return ``notification`` for every subscribed client."""


_ATTEMPTS = 5  # to find the owner, which may change meanwhile
_LAST_SECONDS = 2.0  # to write what has changed before the end


class _Endpoint(Endpoint):
    """An endpoint that notes what changes."""

    def __init__(self, runtime: Server, guard: Guard, directory: Directory, proxies: Collection[Network]) -> None:
        super().__init__(runtime, guard, proxies)
        self.runtime: Server = runtime
        self.journal = Journal(directory, self.lose, self._note_failure)
        self.tasks: dict[str, Held] = {}  # with a record
        self.leaving = False

    def dispatch(self, sent: list[Sent], current: Stream | None = None) -> None:
        """Carry out effects, and note which sessions and tasks they change."""
        super().dispatch(sent, current)
        if not self.journal.directory.keeps_records:
            return
        for connection in {each.connection: None for each in sent}:
            if (session := self.by_connection.get(connection)) is not None:
                self.note(session)
        if self.runtime.tasks is not None:
            self._note_tasks(self.runtime.tasks)

    def end_session(self, session: Session) -> None:
        """End ``session``, and remove its record."""
        super().end_session(session)
        self.journal.forget(_held(session))

    def note(self, session: Session) -> None:
        """Note what has changed in ``session``, if the directory keeps records."""
        if not self.journal.directory.keeps_records:
            return
        self.journal.note(_held(session), SessionRecord(self, session))
        if self.leaving and not self._is_pending(session):
            self._release(session)

    def shutdown(self) -> None:
        """End stateless streams. Sessions continue in other replicas."""
        if not self.journal.directory.keeps_records:
            super().shutdown()
            return
        for connection in [*self.standalone.values()]:
            self.dispatch(self.runtime.end(connection))
        self.hand_over()

    def hand_over(self, *, pending: bool = False) -> None:
        """Release the sessions from now on, as soon as they have no pending requests; with ``pending``, all at once."""
        self.leaving = True
        for session in [*self.sessions.values()]:
            if pending or not self._is_pending(session):
                self._release(session)

    def lose(self, held: Held) -> None:
        """Drop what another replica continues. Nothing more is sent about it."""
        if held.kind == "task":
            if self.runtime.tasks is not None:
                self.runtime.tasks.drop(held.id)
        elif (session := self.sessions.get(held.id)) is not None:
            for stream in session.streams.values():
                if stream.response is not None:
                    stream.response.abort()
            super().end_session(session)

    def _note_failure(self, error: Exception) -> None:
        self.runtime.log.write("cluster_failed", error=f"{type(error).__name__}: {error}")
        self.runtime.log.flush()

    def _is_pending(self, session: Session) -> bool:
        return any(stream in self.requests for stream in session.streams.values())

    def _release(self, session: Session) -> None:
        self.journal.release(_held(session))
        super().end_session(session)

    def _note_tasks(self, tasks: Tasks) -> None:
        for id_, task in tasks.by_id.items():
            held = self.tasks.setdefault(id_, Held("task", id_))
            record: Any = self.journal.records.get(held)
            if record is None or record.ended != task.ended:
                self.journal.note(held, record or TaskRecord(task))
        if len(self.tasks) != len(tasks.by_id):
            for id_ in [id_ for id_ in self.tasks if id_ not in tasks.by_id]:
                self.journal.forget(self.tasks.pop(id_))


class Replica(Application):
    """An application that shares its clients with other replicas."""

    endpoint: _Endpoint

    def __init__(
        self,
        runtime: Server,
        guard: Guard,
        directory: Directory,
        updates: Updates | None = None,
        proxies: Collection[Network] = (),
    ) -> None:
        super().__init__(_Endpoint(runtime, guard, directory, proxies), updates)
        self.directory = directory
        self.journal = self.endpoint.journal
        new_id = self.endpoint.new_id
        self.endpoint.new_id = lambda: directory.name(new_id())
        if runtime.tasks is not None:
            new_task = runtime.tasks.new_id
            runtime.tasks.new_id = lambda: directory.name(new_task())
        self.runtime = runtime
        self.forwarder = Forwarder(self.endpoint.limits)
        self.taking: WeakValueDictionary[Held, asyncio.Lock] = WeakValueDictionary()
        self.loop: asyncio.AbstractEventLoop | None = None  # since the start
        self.writer: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Join the other replicas."""
        self.runtime.publish = self._publish
        await self.directory.start(self._on_news, self.journal.rewrite, lambda: [*self.journal.records])
        self.writer = asyncio.create_task(self.journal.run())
        self.loop = asyncio.get_running_loop()
        if self.draining and self.directory.keeps_records:
            self._leave()

    def drain(self) -> None:
        """Also release sessions, as soon as they have no pending requests. Other replicas continue them."""
        super().drain()
        if self.directory.keeps_records and self.loop is not None:
            self.loop.call_soon_threadsafe(self._leave)

    async def stop(self) -> None:
        """Leave the other replicas, which continue what is still here."""
        if self.directory.keeps_records:
            self.endpoint.hand_over(pending=True)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_SECONDS):
                    await self.journal.flush()
        if self.writer is not None:
            self.writer.cancel()
        await self.directory.stop()
        await self.forwarder.close()

    async def respond(self, request: Request) -> Response:
        """Handle a request, or forward it to the replica that has its session or task.

        Raises:
            ProtocolError: if that is not possible at the moment.
        """
        held = None if request.caller is None or request.body is None else self._named(request)
        try:
            if held is not None and request.caller is not None:
                response = await self._elsewhere(request, held, request.caller)
                if response is not None:
                    return response
            return await self._here(request)
        except Unavailable:
            raise ProtocolError("cluster_unavailable") from None

    async def _here(self, request: Request) -> Response:
        """Handle a request in this replica."""
        response = self.endpoint.handle(request)
        new = records.named_session(self.endpoint, response.headers)
        named = new or records.named_session(self.endpoint, request.headers)
        session = self.endpoint.sessions.get(named or "")
        if session is not None:
            self.endpoint.note(session)
        if new is not None and not await self._is_written([Held("session", new)]):
            if new in self.endpoint.sessions:
                self.endpoint.end_session(self.endpoint.sessions[new])
            raise Unavailable
        response.settle = lambda: self._settle(named)
        return response

    async def _settle(self, session: str | None) -> None:
        """Wait until what the client is about to learn is in the records."""
        await self._is_written(self.endpoint.tasks.values() if session is None else [Held("session", session)])

    async def _is_written(self, held: Any) -> bool:
        return not self.directory.keeps_records or await self.journal.written(held)

    def _named(self, request: Request) -> Held | None:
        """Return the session or task that the headers of ``request`` name, if any."""
        spec = self.endpoint.runtime.spec
        if not self.endpoint.wants_body(request):
            return None
        if request.verb == "POST" and (task := records.named_task(spec, request.headers)) is not None:
            return Held("task", task)
        if request.verb == "POST" and records.is_stateless(spec, request.headers):
            return None
        session = records.named_session(self.endpoint, request.headers)
        return None if session is None else Held("session", session)

    async def _elsewhere(self, request: Request, held: Held, caller: Caller) -> Response | None:
        """Return the response of the owner; None if this replica is the owner, or becomes it, or there is none."""
        refused: Place | None = None
        for _ in range(_ATTEMPTS):
            before = self._found(held)
            try:
                place = await self._locate(held, caller)
            except Unavailable:
                if held.kind == "task" and before is not None:
                    return None
                raise
            if place is None or place.owner == self.directory.id:
                await self._until_taken(held)
                return None
            if HEADER in request.headers:
                response = Response(0, {})
                response.complete(MISDIRECTED)
                return response
            if before is not None and self._found(held) is before:  # else another request has taken it meanwhile
                self.journal.discard(held)
                self.endpoint.lose(held)
            if not place.address or place == refused:
                await self._take(held, place, caller)
            elif (forwarded := await self._forward(request, place)) is not None:
                return forwarded
            refused = place
        raise ProtocolError("replica_busy")

    async def _locate(self, held: Held, caller: Caller) -> Place | None:
        if held in self.journal.released:
            await self.journal.flush()
        return await self.directory.locate(held, caller.principal)

    async def _forward(self, request: Request, place: Place) -> Response | None:
        """Return the response of the owner; None if it has not received the request, or the request may be repeated.

        Raises:
            ProtocolError: if the owner does not respond, or ended when it might have handled the request already.
        """
        try:
            return await self.forwarder.send(request, place)
        except TimeoutError:
            raise ProtocolError("replica_busy") from None
        except ConnectionRefusedError:
            if place.leaving:
                raise ProtocolError("replica_busy") from None
            await self.forwarder.forget(place.address)
        except ConnectionResetError:
            if request.verb == "POST":
                raise ProtocolError("replica_lost") from None
        return None

    async def _take(self, held: Held, place: Place, caller: Caller) -> None:
        """Continue what an owner had that has ended, unless another replica does."""
        lock = self.taking.setdefault(held, asyncio.Lock())
        async with lock:
            fields = await self.directory.take(held, place.owner, caller.principal)
            if fields is None or self._found(held) is not None:
                return
            if place.owner:  # otherwise its owner has released it
                self.log.write("taken_over", kind=held.kind, owner=place.owner)
            if held.kind == "task" and self.runtime.tasks is not None:
                records.restore_task(self.endpoint, self.runtime.tasks, held.id, caller, fields)
                self.endpoint.dispatch([])
            elif held.kind == "session":
                session = records.restore_session(self.endpoint, held.id, caller, fields)
                if session is None:
                    await self.directory.forget([held])
                else:
                    self.journal.note(held, SessionRecord(self.endpoint, session))

    async def _until_taken(self, held: Held) -> None:
        """Wait until this replica has restored what it has just taken."""
        if self._found(held) is None and (lock := self.taking.get(held)) is not None:
            async with lock:
                pass

    def _found(self, held: Held) -> Session | Task | None:
        if held.kind == "session":
            return self.endpoint.sessions.get(held.id)
        return None if self.runtime.tasks is None else self.runtime.tasks.by_id.get(held.id)

    def _leave(self) -> None:
        self.endpoint.hand_over()
        self.farewell = asyncio.create_task(self.directory.leave())

    def _publish(self, notification: Notify) -> None:
        self.directory.publish(json.dumps([notification.method, notification.params]).encode())

    def on_hook(self) -> None:
        """Let the other replicas pull, too: a webhook reaches only one."""
        self._publish(Notify(hook.PATH))

    def _on_news(self, news: bytes) -> None:
        """Send a notification of another replica to the clients of this one, or pull because of its webhook."""
        method, params = json.loads(news)
        if method == hook.PATH:
            if self.updates is not None and self.updates.hook is not None:
                self.updates.hook.ring()
            return
        self.endpoint.dispatch(self.runtime.broadcast(Notify(method, params)))
        self.log.flush()


def _held(session: Session) -> Held:
    return Held("session", session.id)
