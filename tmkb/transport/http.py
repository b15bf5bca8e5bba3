"""Streamable HTTP without sockets: requests, responses, sessions and streams.

A client with a handshake has a session with one connection. A stateless request has its own connection.
Specification: Basic / Transports / Streamable HTTP.
"""

from __future__ import annotations

import itertools
import re
import secrets
import time
import urllib.parse
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tmkb.errors import ProtocolError
from tmkb.protocol import messages, negotiation, outbound
from tmkb.protocol.caller import ANONYMOUS, Caller
from tmkb.protocol.connection import Connection
from tmkb.protocol.effects import Disconnect, Drop, ReleaseStream, Send
from tmkb.protocol.messages import Id
from tmkb.schema.model import Limits, Revision
from tmkb.schema.values import JsonValue
from tmkb.transport import addresses, cors, probes
from tmkb.transport.guard import Guard, bearer
from tmkb.transport.quotas import Account, Accounts, Attempts
from tmkb.transport.streams import JSON, Response, Stream

if TYPE_CHECKING:
    from tmkb.protocol.effects import Sent
    from tmkb.schema.model import Spec
    from tmkb.transport.addresses import Network
    from tmkb.transport.engine import Engine

PATH = "/mcp"
_VERBS = ("POST", "GET", "DELETE")
_MAX_STREAMS = 32  # that a session stores, including those that have ended
_SWEEP = 1.0  # seconds between looking for sessions that have expired
_MAX_ACCEPTED = 64  # values of `Accept` to remember
_MAX_ACCEPT = 200  # characters of such a value
_ACCEPTED: dict[str, bool] = {}  # value of `Accept` → whether it permits what the server sends
_EVENT_ID = re.compile(r"([0-9]{1,15})-([0-9]{1,15})")  # stream and count


class Request(NamedTuple):
    """An HTTP request. Header names are in lower case; ``body`` is None if it exceeds the size limit."""

    verb: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None
    query: str = ""
    peer: str = ""  # the address that the request comes from
    caller: Caller | None = None  # as returned by `Endpoint.admit`


class Session:
    """A session of a client with a handshake: its connection, and its streams by number.

    Stream 0 carries the messages that belong to no request.
    """

    def __init__(self, id_: str, connection: Connection, max_stored: int) -> None:
        assert connection.negotiated is not None
        self.id = id_
        self.connection = connection
        self.rules = connection.negotiated["http"]
        self.max_stored = max_stored
        self.last_used = time.monotonic()
        self.next_number = 0
        self.streams: dict[int, Stream] = {}
        self.general = self.open_stream()

    def belongs_to(self, caller: Caller) -> bool:
        """Return whether ``caller`` may use the session, which has one principal and one view."""
        owner = self.connection.caller
        return (owner.principal, owner.view) == (caller.principal, caller.view)

    def open_stream(self) -> Stream:
        """Return a new stream. Drops the oldest streams that have ended."""
        if (excess := len(self.streams) - _MAX_STREAMS) > 0:
            ended = (number for number, stream in self.streams.items() if stream.ended)
            for number in [*itertools.islice(ended, excess)]:
                self.streams.pop(number).clear()
        resumable, primes = self.rules.get("resumes", False), self.rules.get("primes", False)
        stream = Stream(self.next_number, resumable, primes, self.max_stored, self.connection.budget)
        self.streams[self.next_number] = stream
        self.next_number += 1
        return stream

    @property
    def idle(self) -> bool:
        """Whether no response is in progress."""
        return all(stream.response is None or stream.response.ended for stream in self.streams.values())


class Endpoint:
    """The MCP endpoint of a server, for any number of clients."""

    def __init__(self, runtime: Engine, guard: Guard, proxies: Collection[Network] = ()) -> None:
        """``proxies``: the networks whose header ``X-Forwarded-For`` is believed."""
        self.runtime = runtime
        self.guard = guard
        self.new_id: Callable[[], str] = partial(secrets.token_urlsafe, 24)  # of a session
        self.proxies = proxies
        self.accounts = Accounts(lambda: self.limits)
        self.attempts = Attempts(lambda: self.limits)
        self.sessions: dict[str, Session] = {}
        self.by_connection: dict[Connection, Session] = {}
        self.streams: dict[tuple[Connection, Id], Stream] = {}  # of the pending requests
        self.requests: dict[Stream, list[tuple[Connection, Id]]] = {}  # the keys of `streams`
        self.standalone: dict[Stream, Connection] = {}  # of the pending requests without a session
        self._named_by: tuple[Spec | None, list[str]] = (None, [])  # `session_headers` and where they are from
        self._next_sweep = 0.0  # of the monotonic clock: when requests end sessions of others again
        if runtime.observer is not None:
            runtime.observer.measure(self.figures)

    @property
    def limits(self) -> Limits:
        """The limits of the current snapshot."""
        return self.runtime.spec["server"]["limits"]

    @property
    def session_headers(self) -> list[str]:
        """The names of the session header in the supported revisions."""
        spec = self.runtime.spec
        if spec is not self._named_by[0]:
            self._named_by = spec, self._session_header_names(spec)
        return self._named_by[1]

    @staticmethod
    def _session_header_names(spec: Spec) -> list[str]:
        offered: list[Any] = [spec["revisions"][name]["http"] for name in spec["server"]["revisions"]]
        return [*dict.fromkeys(rules["session"].lower() for rules in offered if "session" in rules)]

    def figures(self) -> dict[str, int]:
        """Return the current numbers of sessions and of open event streams. Other threads may call this."""
        sessions = [*self.sessions.values()]
        streams = [*self.standalone, *(stream for each in sessions for stream in [*each.streams.values()])]
        is_open = [each.response is not None and each.response.started and not each.ended for each in streams]
        return {"sessions": len(sessions), "streams": sum(is_open)}

    def handle(self, request: Request) -> Response:
        """Handle a request and return its response, which may still grow."""
        response = Response(self.limits["stream_bytes"], self._cors(request))
        try:
            self._handle(request, response)
        except ProtocolError as error:
            self._reject(response, error)
        return response

    def admit(self, request: Request) -> Caller:
        """Return the caller of ``request``. Probes, and preflight requests of browsers, need no token.

        Raises:
            ProtocolError: if the guard rejects it, or its address has failed to authenticate too often.
        """
        if not self.screen(request):
            return ANONYMOUS
        token = _credentials(request)
        try:
            caller = self.guard.admit(request.headers)
        except ProtocolError as error:
            if negotiation.preferred(self.runtime.spec)["errors"][error.error].get("status") == 401:
                self.attempts.fail(self._address(request), token)
            raise
        self.attempts.accept(token)
        return caller

    def screen(self, request: Request) -> bool:
        """Check what needs no key of an issuer, and return whether ``request`` needs a token. Raises as `admit`."""
        if self._is_open(request):
            return False
        if "access_token" in urllib.parse.parse_qs(request.query, keep_blank_values=True):  # RFC 6750, section 2.3
            raise ProtocolError("token_in_query")
        self.guard.check_source(request.headers)
        if cors.is_preflight(request.verb, request.headers):
            return False
        if self.attempts.failures:
            self.attempts.check(self._address(request), _credentials(request))
        return True

    def account(self, request: Request) -> Account | None:
        """Return the account that an admitted request counts for; None if it counts for nobody."""
        if request.caller is None or self._is_open(request) or cors.is_preflight(request.verb, request.headers):
            return None
        return self.accounts.of(request.caller.principal)

    def is_listening(self, request: Request, response: Response) -> bool:
        """Return whether ``response`` is a stream for notifications, which does not count as a running request."""
        connection = self.standalone.get(response.stream) if response.stream is not None else None
        return request.verb == "GET" or (connection is not None and bool(connection.listening))

    def wants_body(self, request: Request) -> bool:
        """Return whether `handle` needs the body of ``request``, which the guard admits."""
        try:
            if request.verb == "POST":
                _check_media_types(request.headers)
        except ProtocolError:
            return False
        return request.path == PATH and request.verb in _VERBS

    def reject(self, request: Request, error: ProtocolError, *, closing: bool = True) -> Response:
        """Return the error response to a request. ``closing``: close the HTTP connection after it."""
        closed = {"connection": "close"} if closing else {}
        response = Response(self.limits["stream_bytes"], {**self._cors(request), **closed})
        self._reject(response, error)
        return response

    def on_disconnect(self, response: Response) -> None:
        """Detach a response whose client has disconnected. Without a session, this cancels the request."""
        response.take()
        response.end()
        stream = response.stream
        if stream is None or stream.response is not response:
            return
        stream.detach()
        if stream in self.standalone:
            self._end_standalone(stream)

    def on_idle(self, response: Response) -> None:
        """Keep a response alive to which nothing was written for a while."""
        if response.stream is not None and not response.ended:
            response.stream.keep_alive()

    def due(self) -> float | None:
        """Return the seconds until the next operation resumes, or None without operations."""
        return self.runtime.due()

    def work(self) -> None:
        """Resume the operations that are due."""
        self.dispatch(self.runtime.work())

    def shutdown(self) -> None:
        """End all connections and the general streams. Operations that still run may finish."""
        for connection in [*self.standalone.values(), *(session.connection for session in self.sessions.values())]:
            self.dispatch(self.runtime.end(connection))
        for session in self.sessions.values():
            session.general.end()

    def _handle(self, request: Request, response: Response) -> None:
        if request.path in probes.PATHS and request.verb in ("GET", "HEAD"):
            probes.answer(request.path, response, self.runtime)
            return
        if self._describe(request, response):
            return
        caller = request.caller or self.admit(request)
        preflight = cors.is_preflight(request.verb, request.headers)
        if not preflight:
            response.budget = self.runtime.budget(caller.principal)
            response.caller = caller
        if request.path != PATH and not (preflight and self._is_open(request)):
            raise ProtocolError("no_such_path", path=request.path, endpoint=PATH)
        if preflight:
            response.complete(204, cors.preflight(request.headers, _VERBS))
            return
        if request.verb == "POST":
            self._post(request, caller, response)
        elif request.verb in ("GET", "DELETE") and (session := self._session(request, caller)) is not None:
            self._get(request, session, response) if request.verb == "GET" else self._delete(session, response)
        else:
            raise ProtocolError("no_such_verb", verb=request.verb, permitted="POST")

    def _describe(self, request: Request, response: Response) -> bool:
        """Respond with the metadata for clients without a token, if ``request`` is for it (RFC 9728)."""
        access = self.guard.access
        if access is None or request.verb not in ("GET", "HEAD") or request.path not in access.metadata_paths:
            return False
        self.guard.check_source(request.headers)
        response.complete(200, JSON, access.metadata)
        return True

    def _is_open(self, request: Request) -> bool:
        """Return whether ``request`` is for something that needs no token."""
        access = self.guard.access
        return request.path in probes.PATHS or (access is not None and request.path in access.metadata_paths)

    def _address(self, request: Request) -> str:
        return addresses.client(request.peer, request.headers.get("x-forwarded-for", ""), self.proxies)

    def _cors(self, request: Request) -> dict[str, str]:
        """Return the CORS headers of the response."""
        try:
            self.guard.check_source(request.headers)
        except ProtocolError:
            return cors.response(None, ())
        if (origin := request.headers.get("origin")) is None:
            return cors.response(None, ())
        return cors.response(origin, [*self.session_headers, "www-authenticate", "retry-after"])

    def _post(self, request: Request, caller: Caller, response: Response) -> None:
        _check_media_types(request.headers)
        if request.body is None:
            raise ProtocolError("message_too_large", limit=self.limits["message_bytes"])
        observer = self.runtime.observer
        if observer is not None:
            observer.received(len(request.body))
        try:
            value = messages.decode(request.body)
        except ProtocolError as error:
            self._reject(response, error, self._session(request, caller))
            return
        if isinstance(value, list) and value:  # the request itself was counted already
            self.accounts.of(caller.principal).add(len(value) - 1)
        if negotiation.describes_itself(self.runtime.spec, value, request.headers):
            self._handle_standalone(self.runtime.connect(request.headers, caller), value, response)
        elif (session := self._session(request, caller)) is not None:
            if observer is not None:
                session.connection.trace_headers = observer.trace_headers(request.headers)
            stream = session.open_stream()
            stream.attach(response)
            self._process(session.connection, value, stream)
        else:
            self._check_version(negotiation.preferred(self.runtime.spec), request.headers)
            self._handle_handshake(value, caller, response)

    def _handle_standalone(self, connection: Connection, value: JsonValue, response: Response) -> None:
        """Handle a stateless request. The connection ends with its response."""
        if messages.is_response(value):  # to no request: Streamable HTTP, Sending Messages to the Server
            self.runtime.abandon(connection)
            raise ProtocolError("invalid_request")
        stream = Stream(0, False, False, self.limits["stream_bytes"], connection.budget)
        stream.attach(response)
        self.standalone[stream] = connection
        self._process(connection, value, stream)
        if stream not in self.requests:
            self._end_standalone(stream)
        elif (limit := self._exceeded_limit(connection)) is not None:
            self._end_standalone(stream)
            raise ProtocolError("too_many_streams", limit=limit)

    def _exceeded_limit(self, connection: Connection) -> int | None:
        """Return the limit on streams that ``connection`` exceeds, per principal or in total; None if it exceeds none.

        Subscription streams and pending requests are counted separately.
        """
        listens = bool(connection.listening)
        same = [each.principal for each in self.standalone.values() if bool(each.listening) == listens]
        if same.count(connection.principal) > self.limits["principal_streams"]:
            return self.limits["principal_streams"]
        return self.limits["streams"] if len(same) > self.limits["streams"] else None

    def _handle_handshake(self, value: JsonValue, caller: Caller, response: Response) -> None:
        """Handle a request without a session, and start one if the handshake succeeds."""
        connection = self.runtime.connect(caller=caller)
        stream = Stream(0, False, False, self.limits["stream_bytes"], connection.budget)
        stream.attach(response)
        self._process(connection, value, stream)
        if connection.negotiated is None or "session" not in connection.negotiated["http"]:
            self._forget_requests(stream)
            self.runtime.abandon(connection)
            return
        try:
            self._make_room(caller.principal)
        except ProtocolError:
            self.runtime.abandon(connection)
            raise
        session = Session(self.new_id(), connection, self.limits["stream_bytes"])
        self.add_session(session)
        response.headers[session.rules["session"].lower()] = session.id

    def _process(self, connection: Connection, value: JsonValue, stream: Stream) -> None:
        """Handle the message or batch ``value``, whose HTTP response is ``stream``.

        A pending request with the same id keeps its stream; the error for the second request goes to ``stream``.
        """
        keys = [key for id_ in _ids(value) if (key := (connection, id_)) not in self.streams]
        if keys:
            self.requests[stream] = keys
            self.streams.update(dict.fromkeys(keys, stream))
        self.dispatch(self.runtime.handle_value(connection, value), stream)
        for key in [key for key in self.requests.get(stream, ()) if not connection.is_in_flight(key[1])]:
            self.requests[stream].remove(key)
            del self.streams[key]
        if not self.requests.get(stream):
            self.requests.pop(stream, None)
        if not keys:
            if stream.response is not None and not stream.response.started:
                stream.response.complete(202)
            stream.end()

    def dispatch(self, sent: list[Sent], current: Stream | None = None) -> None:
        """Carry out effects on the streams of their requests.

        Args:
            current: the stream for the responses to the message that is being handled.
        """
        for each in sent:
            stream = self.streams.get((each.connection, each.about)) if each.about is not None else None
            if isinstance(each, (ReleaseStream, Drop, Disconnect)):
                if stream is not None:
                    self._close(each, stream, current)
            elif each.is_response and (stream := stream or current) is not None:
                self._respond(each, stream)
                if stream in self.standalone and stream is not current:
                    self._end_standalone(stream)
            elif stream is not None:
                stream.add(each.message)
            elif (session := self.by_connection.get(each.connection)) is not None:
                session.general.add(each.message)

    def _close(self, effect: ReleaseStream | Drop | Disconnect, stream: Stream, current: Stream | None) -> None:
        """End ``stream`` without a response, for now or for good. ``current``: see `dispatch`."""
        if isinstance(effect, ReleaseStream):
            stream.release(self.limits["retry_milliseconds"])
            return
        if isinstance(effect, Disconnect) and stream.response is not None:
            stream.response.abort()
        stream.end()
        self._forget_requests(stream)
        if isinstance(effect, Disconnect) and stream in self.standalone and stream is not current:
            self._end_standalone(stream)

    def _respond(self, sent: Send, stream: Stream) -> None:
        """Send the response in ``stream``, or an error if the client reads too slowly for its size."""
        keys, message, status = self.requests.get(stream), sent.message, _status(sent)
        replacement = partial(_error_responses, sent.message, sent.connection, keys) if keys else None
        response = stream.response
        too_large = response is not None and not response.started and not response.fits(len(message))
        if replacement is not None and too_large:
            error = ProtocolError("too_much_in_transit", limit=self.limits["principal_bytes"])
            message, status = replacement(error), sent.connection.revision["errors"][error.error]["status"]
        if sent.error is not None and response is not None and (challenge := self._challenge(sent.error, status)):
            response.base_headers["www-authenticate"] = challenge
        stream.respond(message, status, replacement)
        self._forget_requests(stream)

    def _forget_requests(self, stream: Stream) -> None:
        """Remove the pending requests of ``stream``."""
        for key in self.requests.pop(stream, ()):
            self.streams.pop(key, None)

    def _end_standalone(self, stream: Stream) -> None:
        """End the connection of a request without a session."""
        self._forget_requests(stream)
        self.runtime.abandon(self.standalone.pop(stream))

    def _get(self, request: Request, session: Session, response: Response) -> None:
        """Open the general stream of ``session``, or resume a stream."""
        if not _accepts(request.headers.get("accept", "*/*"), "text/event-stream"):
            raise ProtocolError("not_acceptable", wanted="text/event-stream")
        event_id = request.headers.get("last-event-id")
        if event_id is None or not session.rules.get("resumes"):
            response.start_stream()
            session.general.attach(response)
            return
        match = _EVENT_ID.fullmatch(event_id)
        stream = session.streams.get(int(match[1])) if match is not None else None
        if match is None or stream is None or stream.is_lost_after(int(match[2])):
            raise ProtocolError("no_such_event", event=event_id)
        stream.attach(response, int(match[2]))

    def _delete(self, session: Session, response: Response) -> None:
        self.end_session(session)
        response.complete(204)

    def _session(self, request: Request, caller: Caller) -> Session | None:
        """Return the session that the headers of ``request`` name; None without such a header.

        Raises:
            ProtocolError: if the session does not exist, or belongs to another principal or view.
        """
        id_ = next((request.headers[name] for name in self.session_headers if name in request.headers), None)
        if id_ is None:
            return None
        self._end_if_expired(id_)
        session = self.sessions.get(id_)
        if session is None or not session.belongs_to(caller):
            raise ProtocolError("no_such_session")
        session.connection.caller = caller  # its token can have other scopes than that of the last request
        session.last_used = time.monotonic()
        self._check_version(session.connection.revision, request.headers)
        return session

    def _check_version(self, revision: Revision, headers: Mapping[str, str]) -> None:
        name = revision["http"].get("version")
        version = headers.get(name.lower()) if name else None
        if name and version is not None and version.strip() not in self.runtime.spec["revisions"]:
            supported: Any = negotiation.versions(self.runtime.spec)
            raise ProtocolError("bad_revision_header", header=name, requested=version, supported=supported)

    def _end_if_expired(self, id_: str) -> None:
        """End the session ``id_`` if it has expired, and at times the others that have."""
        now = time.monotonic()
        session = self.sessions.get(id_)
        if session is not None and session.last_used < now - self.limits["session_seconds"] and session.idle:
            self.end_session(session)
        if now >= self._next_sweep:
            self._next_sweep = now + _SWEEP
            self._end_expired_sessions()

    def _end_expired_sessions(self) -> None:
        oldest = time.monotonic() - self.limits["session_seconds"]
        for session in [session for session in self.sessions.values() if session.last_used < oldest and session.idle]:
            self.end_session(session)

    def _make_room(self, principal: str) -> None:
        """End sessions of ``principal``, the longest idle first, until another one is within the limits.

        Also end idle sessions while they use more than half of the principal's budget. Sessions of other principals
        stay.

        Raises:
            ProtocolError: if there are too many sessions, and all belong to other principals.
        """
        self._end_expired_sessions()
        budget = self.runtime.budget(principal).limit
        while True:
            own = [session for session in self.sessions.values() if session.connection.principal == principal]
            full = len(self.sessions) >= self.limits["sessions"] or len(own) >= self.limits["principal_sessions"]
            oldest = min(own, key=lambda session: (not session.idle, session.last_used), default=None)
            if full and oldest is None:
                raise ProtocolError("too_many_sessions", limit=self.limits["sessions"])
            idle = sum(session.connection.budget.reserved for session in own if session.idle)
            if oldest is None or not (full or idle * 2 > budget):
                return
            self.end_session(oldest)

    def add_session(self, session: Session) -> None:
        """Serve ``session`` from now on."""
        self.sessions[session.id] = session
        self.by_connection[session.connection] = session

    def end_session(self, session: Session) -> None:
        """End ``session``: stop its operations and end its streams."""
        del self.sessions[session.id], self.by_connection[session.connection]
        self.runtime.abandon(session.connection)
        for stream in session.streams.values():
            self._forget_requests(stream)
            stream.end()

    def _challenge(self, error: ProtocolError, status: int, with_token: bool = True) -> str:
        """Return the value of `WWW-Authenticate` in the response to a request without permission; "" for others."""
        if not (status == 401 or error.error in ("insufficient_scope", "token_in_query")):
            return ""
        if self.guard.access is None:
            return "Bearer"
        sentence = outbound.failure(error, negotiation.preferred(self.runtime.spec)["errors"]).sentence
        return self.guard.access.challenge(status, sentence, error.fields.get("scopes"), with_token)

    def _reject(self, response: Response, error: ProtocolError, session: Session | None = None) -> None:
        """Complete ``response`` with an error for a request whose JSON-RPC id is not known."""
        if self.runtime.observer is not None:
            self.runtime.observer.refused(error.error)
        revision = negotiation.preferred(self.runtime.spec)
        if session is not None:
            revision = session.connection.revision
        errors, omit_id = revision["errors"], session is None or revision["message"]["unread_id"] == "absent"
        headers = {**JSON}
        status = errors[error.error].get("status", 400)
        if status in (401, 403) and self.guard.access is not None and self.guard.access.audits:
            refused = outbound.audit_line(self.runtime.spec, "-", "-", "-", error.error)
            self.runtime.log.write(refused.line, None, **refused.fields)
        if challenge := self._challenge(error, status, error.error != "unauthorized"):
            headers["www-authenticate"] = challenge
        if error.error == "no_such_verb":
            headers["allow"] = str(error.fields["permitted"])
        if status in (429, 503):
            headers["retry-after"] = str(error.fields.get("retryAfter", self.limits["busy_seconds"]))
        body = messages.error_response(None, outbound.wire_error(outbound.failure(error, errors)), omit_id)
        response.complete(status, headers, body)


def _error_responses(
    response: bytes, connection: Connection, keys: list[tuple[Connection, Id]], error: ProtocolError
) -> bytes:
    """Return error responses instead of a response or batch that is too large."""
    wire = outbound.wire_error(outbound.failure(error, connection.revision["errors"]))
    responses = [messages.error_response(id_, wire, False) for _, id_ in keys]
    return messages.batch(responses) if response.startswith(b"[") else responses[0]


def _ids(value: JsonValue) -> list[Id]:
    """Return the ids of the requests in a message or batch."""
    ids: list[Id] = []
    for each in value if isinstance(value, list) else [value]:
        id_ = messages.request_id(each)
        if id_ is not None and id_ not in ids:
            ids.append(id_)
    return ids


def _status(sent: Send) -> int:
    """Return the HTTP status of a response: 400 instead of 200 for a request that lacks a session."""
    connection: Connection = sent.connection
    lacks_session = connection.negotiated is None and connection.headers is None
    return 400 if lacks_session and sent.status == 200 else sent.status or 200


def _credentials(request: Request) -> str:
    """Return the token of ``request`` without the white space around it, or what it has instead; "" if nothing."""
    return bearer(request.headers) or request.headers.get("authorization", "")


def _check_media_types(headers: Mapping[str, str]) -> None:
    """Raise ProtocolError if the body is not JSON, or the client does not accept JSON and event streams."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ProtocolError("wrong_media_type", wanted="application/json")
    if (coding := headers.get("content-encoding", "identity").strip()).lower() not in ("", "identity"):
        raise ProtocolError("wrong_content_coding", coding=coding)
    if not _accepts_both(headers.get("accept", "*/*")):
        raise ProtocolError("not_acceptable", wanted="application/json and text/event-stream")


def _accepts_both(accept: str) -> bool:
    """Return whether a client accepts JSON and event streams. Nearly all clients send the same few values."""
    known = _ACCEPTED.get(accept)
    if known is None:
        known = _accepts(accept, "application/json") and _accepts(accept, "text/event-stream")
        if len(accept) <= _MAX_ACCEPT and len(_ACCEPTED) < _MAX_ACCEPTED:
            _ACCEPTED[accept] = known
    return known


def _accepts(accept: str, media_type: str) -> bool:
    media_types = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    return not media_types.isdisjoint({media_type, media_type.partition("/")[0] + "/*", "*/*"})
