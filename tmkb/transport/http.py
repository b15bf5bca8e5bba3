"""Streamable HTTP without a socket: requests in, answers out. What a session is, is known here and nowhere else.

A client that shakes hands has a session with one connection; a request that describes itself has a connection of its
own.
Specification: Basic / Transports / Streamable HTTP.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tmkb.errors import ProtocolError
from tmkb.protocol import messages, negotiation, outbound
from tmkb.protocol.connection import Connection
from tmkb.protocol.effects import Drop, ReleaseStream, Send
from tmkb.protocol.messages import Id
from tmkb.schema.model import Limits, Revision
from tmkb.schema.values import JsonValue
from tmkb.transport import cors
from tmkb.transport.guard import Guard
from tmkb.transport.streams import JSON, Answer, Stream

if TYPE_CHECKING:
    from tmkb.server.runtime import Runtime, Sent

PATH = "/mcp"
HEALTH = "/healthz"
_VERBS = ("POST", "GET", "DELETE")
_KEPT = 32  # streams of a session that can be gone on with
_EVENT = re.compile(r"([0-9]{1,15})-([0-9]{1,15})")  # the id of an event: its stream and its count


class Call(NamedTuple):
    """An HTTP request: the names of ``headers`` in lower case; ``body`` None where it was longer than we read."""

    verb: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None


class Session:
    """A client that has shaken hands: its connection, and its streams by their numbers.

    The stream 0 is for what belongs to no request.
    """

    def __init__(self, connection: Connection, most: int) -> None:
        assert connection.negotiated is not None
        self.id = secrets.token_urlsafe(24)
        self.connection = connection
        self.rules = connection.negotiated["http"]
        self.most = most
        self.seen = time.monotonic()
        self.next = 0
        self.streams: dict[int, Stream] = {}
        self.general = self.open()

    def open(self) -> Stream:
        """A new stream. Of those that have ended only the newest are kept."""
        ended = [number for number, stream in self.streams.items() if stream.ended]
        for number in ended[: max(0, len(self.streams) - _KEPT)]:
            self.streams.pop(number).clear()
        resumes, primes = self.rules.get("resumes", False), self.rules.get("primes", False)
        stream = Stream(self.next, resumes, primes, self.most, self.connection.budget)
        self.streams[self.next] = stream
        self.next += 1
        return stream

    @property
    def idle(self) -> bool:
        """Whether no response is being sent."""
        return all(stream.answer is None or stream.answer.ended for stream in self.streams.values())


class Endpoint:
    """A server at one address, for any number of clients."""

    def __init__(self, runtime: Runtime, guard: Guard) -> None:
        self.runtime = runtime
        self.guard = guard
        self.sessions: dict[str, Session] = {}
        self.talking: dict[Connection, Session] = {}  # the same sessions
        self.waiting: dict[tuple[Connection, Id], Stream] = {}  # where the answer to a request goes
        self.keys: dict[Stream, list[tuple[Connection, Id]]] = {}  # of `waiting`
        self.open: dict[Stream, Connection] = {}  # responses of clients without a session that go on

    @property
    def limits(self) -> Limits:
        """Those of what is served now."""
        return self.runtime.spec["server"]["limits"]

    @property
    def named_by(self) -> list[str]:
        """The headers that name a session in what is served now."""
        spec = self.runtime.spec
        offered: list[Any] = [spec["revisions"][name]["http"] for name in spec["server"]["revisions"]]
        return [*dict.fromkeys(rules["session"].lower() for rules in offered if "session" in rules)]

    def receive(self, call: Call, wake: Callable[[], None]) -> Answer:
        """The answer to ``call``, complete or not; ``wake`` is called whenever there is more of it."""
        answer = Answer(wake, self.limits["stream_bytes"], self._cors(call))
        try:
            self._receive(call, answer)
        except ProtocolError as error:
            self._refuse(answer, error)
        return answer

    def principal(self, call: Call) -> str | None:
        """Return the principal of ``call``; None if the guard refuses it."""
        try:
            return self.guard.admit(call.headers)
        except ProtocolError:
            return None

    def wants_body(self, call: Call) -> bool:
        """Whether the body of ``call``, which the guard admits, is needed; else `receive` answers for its head."""
        try:
            if call.verb == "POST":
                _acceptable(call.headers)
        except ProtocolError:
            return False
        return call.path == PATH and call.verb in _VERBS

    def refuse(self, call: Call, error: ProtocolError, wake: Callable[[], None]) -> Answer:
        """Return the response to a request that is not read to its end; the last one of its connection."""
        answer = Answer(wake, self.limits["stream_bytes"], {**self._cors(call), "connection": "close"})
        self._refuse(answer, error)
        return answer

    def gone(self, answer: Answer) -> None:
        """The client has closed its side before the end. Without a session that cancels what it has asked for."""
        answer.take()
        stream = answer.stream
        if stream is None or stream.answer is not answer:
            return
        stream.detach()
        if stream in self.open:
            self._close(stream)

    def quiet(self, answer: Answer) -> None:
        """Nothing has been sent for a while."""
        if answer.stream is not None and not answer.ended:
            answer.stream.still_there()

    def due(self) -> float | None:
        """In how many seconds there is something to do for operations that run; None where none does."""
        return self.runtime.due()

    def work(self) -> None:
        """Go on with the operations whose time has come."""
        self._route(self.runtime.work())

    def say(self, sent: list[Sent]) -> None:
        """Bring what is sent for another reason to whom it concerns."""
        self._route(sent)

    def end(self) -> None:
        """Tell all who listen that we end. What else runs may go on."""
        for connection in [*self.open.values(), *(session.connection for session in self.sessions.values())]:
            self._route(self.runtime.end(connection))
        for session in self.sessions.values():
            session.general.end()

    def _receive(self, call: Call, answer: Answer) -> None:
        if call.path == HEALTH and call.verb in ("GET", "HEAD"):
            answer.complete(200, {"content-type": "text/plain"}, b"ok\n" if call.verb == "GET" else b"")
            return
        preflight = cors.is_preflight(call.verb, call.headers)
        if preflight:  # browsers send it without the token
            self.guard.check_source(call.headers)
        principal = "" if preflight else self.guard.admit(call.headers)
        if not preflight:
            answer.budget = self.runtime.budget(principal)
        if call.path != PATH:
            raise ProtocolError("no_such_path", path=call.path, endpoint=PATH)
        if preflight:
            answer.complete(204, cors.preflight(call.headers, _VERBS))
            return
        if call.verb == "POST":
            self._post(call, principal, answer)
        elif call.verb in ("GET", "DELETE") and (session := self._session(call, principal)) is not None:
            self._listen(call, session, answer) if call.verb == "GET" else self._delete(session, answer)
        else:
            raise ProtocolError("no_such_verb", verb=call.verb, permitted="POST")

    def _cors(self, call: Call) -> dict[str, str]:
        """Make the headers that let a page read the response, if its origin is permitted."""
        try:
            self.guard.check_source(call.headers)
        except ProtocolError:
            return cors.response(None, ())
        return cors.response(call.headers.get("origin"), [*self.named_by, "www-authenticate"])

    def _post(self, call: Call, principal: str, answer: Answer) -> None:
        _acceptable(call.headers)
        if call.body is None:
            raise ProtocolError("message_too_large", limit=self.limits["message_bytes"])
        try:
            value = messages.decode(call.body)
        except ProtocolError as error:
            self._refuse(answer, error, self._session(call, principal))
            return
        if negotiation.describes_itself(self.runtime.spec, value, call.headers):  # which no session is part of
            self._alone(self.runtime.connect(call.headers, principal), value, answer)
        elif (session := self._session(call, principal)) is not None:
            self._continue(session, value, answer)
        else:
            self._check_version(negotiation.preferred(self.runtime.spec), call.headers)
            self._begin(value, principal, answer)

    def _alone(self, connection: Connection, value: JsonValue, answer: Answer) -> None:
        """A request that describes itself; with its response the connection ends."""
        if messages.is_response(value):  # the server has asked nothing: Streamable HTTP, Sending Messages to the Server
            self.runtime.abandon(connection)
            raise ProtocolError("invalid_request")
        stream = Stream(0, False, False, self.limits["stream_bytes"], connection.budget)
        stream.attach(answer)
        self.open[stream] = connection
        self._exchange(connection, value, stream)
        if stream not in self.keys:
            self._close(stream)
        elif (limit := self._exceeded(connection)) is not None:
            self._close(stream)
            raise ProtocolError("too_many_streams", limit=limit)

    def _exceeded(self, connection: Connection) -> int | None:
        """Return the limit on streams that ``connection`` exceeds, of its principal or of all, or None.

        Streams that listen do not take the place of those that wait for an answer.
        """
        listens = bool(connection.listening)
        same = [each.principal for each in self.open.values() if bool(each.listening) == listens]
        if same.count(connection.principal) > self.limits["principal_streams"]:
            return self.limits["principal_streams"]
        return self.limits["streams"] if len(same) > self.limits["streams"] else None

    def _begin(self, value: JsonValue, principal: str, answer: Answer) -> None:
        """A client without a session: it shakes hands, or is told that it has to."""
        connection = self.runtime.connect(principal=principal)
        stream = Stream(0, False, False, self.limits["stream_bytes"], connection.budget)
        stream.attach(answer)
        self._exchange(connection, value, stream)
        if connection.negotiated is None or "session" not in connection.negotiated["http"]:
            self._settle(stream)
            self.runtime.abandon(connection)
            return
        try:
            self._make_room(principal)
        except ProtocolError:
            self.runtime.abandon(connection)
            raise
        session = Session(connection, self.limits["stream_bytes"])
        self.sessions[session.id] = self.talking[connection] = session
        answer.headers[session.rules["session"].lower()] = session.id

    def _continue(self, session: Session, value: JsonValue, answer: Answer) -> None:
        stream = session.open()
        stream.attach(answer)
        self._exchange(session.connection, value, stream)

    def _exchange(self, connection: Connection, value: JsonValue, stream: Stream) -> None:
        """Handle ``value``, and send what follows from it to the streams it belongs to.

        A request whose id is in use keeps its stream; the refusal of the second goes to ``stream``.
        """
        keys = [key for id_ in _ids(value) if (key := (connection, id_)) not in self.waiting]
        if keys:
            self.keys[stream] = keys
            self.waiting.update(dict.fromkeys(keys, stream))
        self._route(self.runtime.handle_value(connection, value), stream)
        for key in [key for key in self.keys.get(stream, ()) if not connection.is_in_flight(key[1])]:
            self.keys[stream].remove(key)
            del self.waiting[key]
        if not self.keys.get(stream):
            self.keys.pop(stream, None)
        if not keys:
            if stream.answer is not None and not stream.answer.begun:
                stream.answer.complete(202)
            stream.end()

    def _route(self, sent: list[Sent], current: Stream | None = None) -> None:
        for each in sent:
            stream = self.waiting.get((each.connection, each.about)) if each.about is not None else None
            if isinstance(each, ReleaseStream):
                if stream is not None:
                    stream.release(self.limits["retry_milliseconds"])
            elif isinstance(each, Drop):
                if stream is not None:
                    stream.end()
                    self._settle(stream)
            elif each.answers and (stream := stream or current) is not None:
                self._respond(each, stream)
                if stream in self.open and stream is not current:
                    self._close(stream)
            elif (stream := stream or self._general(each.connection)) is not None:
                stream.add(each.message)

    def _respond(self, sent: Send, stream: Stream) -> None:
        """Send the response in ``stream``, or an error if the client reads too little for it to wait."""
        keys, message, status = self.keys.get(stream), sent.message, _status(sent)
        instead = partial(_stand_in, sent.message, sent.connection, keys) if keys else None
        answer = stream.answer
        if instead is not None and answer is not None and not answer.begun and not answer.fits(len(message)):
            error = ProtocolError("too_much_in_transit", limit=self.limits["principal_bytes"])
            message, status = instead(error), sent.connection.revision["errors"][error.error]["status"]
        stream.respond(message, status, instead)
        self._settle(stream)

    def _general(self, connection: Connection) -> Stream | None:
        return self.talking[connection].general if connection in self.talking else None

    def _settle(self, stream: Stream) -> None:
        """No request waits for ``stream`` any more."""
        for key in self.keys.pop(stream, ()):
            self.waiting.pop(key, None)

    def _close(self, stream: Stream) -> None:
        """A client without a session is done, or has gone."""
        self._settle(stream)
        self.runtime.abandon(self.open.pop(stream))

    def _listen(self, call: Call, session: Session, answer: Answer) -> None:
        """Hear what belongs to no request, or the rest of a stream."""
        if not _permits(call.headers.get("accept", "*/*"), "text/event-stream"):
            raise ProtocolError("not_acceptable", wanted="text/event-stream")
        event = call.headers.get("last-event-id")
        if event is None or not session.rules.get("resumes"):
            answer.begin_stream()
            session.general.attach(answer)
            return
        found = _EVENT.fullmatch(event)
        stream = session.streams.get(int(found[1])) if found is not None else None
        if found is None or stream is None or stream.lacks(int(found[2])):
            raise ProtocolError("no_such_event", event=event)
        stream.attach(answer, int(found[2]))

    def _delete(self, session: Session, answer: Answer) -> None:
        self._drop(session)
        answer.complete(204)

    def _session(self, call: Call, principal: str) -> Session | None:
        """Return the session that ``call`` names; None if it names none.

        Raises:
            ProtocolError: if ``principal`` has no such session, whether or not another principal has.
        """
        id_ = next((call.headers[name] for name in self.named_by if name in call.headers), None)
        if id_ is None:
            return None
        self._expire()
        session = self.sessions.get(id_)
        if session is None or session.connection.principal != principal:
            raise ProtocolError("no_such_session")
        session.seen = time.monotonic()
        self._check_version(session.connection.revision, call.headers)
        return session

    def _check_version(self, revision: Revision, headers: Mapping[str, str]) -> None:
        header = revision["http"].get("version")
        said = headers.get(header.lower()) if header else None
        if header and said is not None and said.strip() not in self.runtime.spec["revisions"]:
            supported: Any = negotiation.versions(self.runtime.spec)
            raise ProtocolError("bad_revision_header", header=header, requested=said, supported=supported)

    def _expire(self) -> None:
        oldest = time.monotonic() - self.limits["session_seconds"]
        for session in [session for session in self.sessions.values() if session.seen < oldest and session.idle]:
            self._drop(session)

    def _make_room(self, principal: str) -> None:
        """End sessions of ``principal``, the longest idle first, until it may have another one.

        Idle sessions are also ended while they hold more than half of the principal's budget, so that others can work.
        Sessions of other principals stay.

        Raises:
            ProtocolError: if there are too many sessions, none of them of ``principal``.
        """
        self._expire()
        most = self.runtime.budget(principal).limit
        while True:
            own = [session for session in self.sessions.values() if session.connection.principal == principal]
            full = len(self.sessions) >= self.limits["sessions"] or len(own) >= self.limits["principal_sessions"]
            oldest = min(own, key=lambda session: (not session.idle, session.seen), default=None)
            if full and oldest is None:
                raise ProtocolError("too_many_sessions", limit=self.limits["sessions"])
            held = sum(session.connection.budget.reserved for session in own if session.idle)
            if oldest is None or not (full or held * 2 > most):
                return
            self._drop(oldest)

    def _drop(self, session: Session) -> None:
        del self.sessions[session.id], self.talking[session.connection]
        self.runtime.abandon(session.connection)
        for stream in session.streams.values():
            self._settle(stream)
            stream.end()

    def _refuse(self, answer: Answer, error: ProtocolError, session: Session | None = None) -> None:
        """What is wrong with the request itself, whose id has not been read."""
        revision = negotiation.preferred(self.runtime.spec)
        if session is not None:
            revision = session.connection.revision
        errors, omit_id = revision["errors"], session is None or revision["message"]["unread_id"] == "absent"
        headers = {**JSON}
        if error.error == "unauthorized":
            headers["www-authenticate"] = "Bearer"
        if error.error == "no_such_verb":
            headers["allow"] = str(error.fields["permitted"])
        body = messages.error_response(None, outbound.wire_error(outbound.failure(error, errors)), omit_id)
        answer.complete(errors[error.error].get("status", 400), headers, body)


def _stand_in(
    response: bytes, connection: Connection, keys: list[tuple[Connection, Id]], error: ProtocolError
) -> bytes:
    """Make the response, or the batch of them, with ``error`` in place of one that is too large."""
    wire = outbound.wire_error(outbound.failure(error, connection.revision["errors"]))
    responses = [messages.error_response(id_, wire, False) for _, id_ in keys]
    return messages.batch(responses) if response.startswith(b"[") else responses[0]


def _ids(value: JsonValue) -> list[Id]:
    """The ids of the requests in a message or a batch of them."""
    found: list[Id] = []
    for each in value if isinstance(value, list) else [value]:
        id_ = messages.request_id(each)
        if id_ is not None and id_ not in found:
            found.append(id_)
    return found


def _status(sent: Send) -> int:
    """200 for results. A client that should have a session and has none is refused with 400."""
    connection: Connection = sent.connection
    homeless = connection.negotiated is None and connection.headers is None
    return 400 if homeless and sent.status == 200 else sent.status or 200


def _acceptable(headers: Mapping[str, str]) -> None:
    """Raises ProtocolError where the body is no JSON, or the client does not take both kinds of answers."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ProtocolError("wrong_media_type", wanted="application/json")
    if (coding := headers.get("content-encoding", "identity").strip()).lower() not in ("", "identity"):
        raise ProtocolError("wrong_content_coding", coding=coding)
    accept = headers.get("accept", "*/*")
    if not (_permits(accept, "application/json") and _permits(accept, "text/event-stream")):
        raise ProtocolError("not_acceptable", wanted="application/json and text/event-stream")


def _permits(accept: str, kind: str) -> bool:
    permitted = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    return not permitted.isdisjoint({kind, kind.partition("/")[0] + "/*", "*/*"})
