"""Records: what another replica needs to continue a session or a task whose replica has ended.

A record is a flat map, so that a change writes only a few fields. ``about`` describes the session, ``stream:N`` its
stream N, ``event:N-C`` the event with this id. The directory adds ``owner`` and compares ``principal``.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tmkb.errors import ProtocolError
from tmkb.protocol import budget, messages, outbound
from tmkb.protocol.headers import decode
from tmkb.transport.http import Endpoint, Session
from tmkb.transport.streams import Stream

if TYPE_CHECKING:
    from tmkb.cluster.directory import Fields
    from tmkb.protocol.caller import Caller
    from tmkb.protocol.messages import Id
    from tmkb.protocol.tasks import Task, Tasks
    from tmkb.schema.model import Revision, Spec


class SessionRecord:
    """What has been written about a session, to compute what changed since."""

    def __init__(self, endpoint: Endpoint, session: Session) -> None:
        self.endpoint = endpoint
        self.session = session
        self.clear()

    def clear(self) -> None:
        """Forget what has been written, so that the next changes are the whole record."""
        self.about: object = None
        self.streams: dict[int, tuple[object, ...]] = {}
        self.last_stored: dict[int, int] = {}  # count of the newest event, by stream
        self.last_dropped: dict[int, int] = {}

    def changes(self) -> dict[str, bytes | None]:
        """Return the fields that have changed since the last call; None for a removed field."""
        changed: dict[str, bytes | None] = {}
        for number in [number for number in self.streams if number not in self.session.streams]:
            self._drop(changed, number, self.last_stored[number])
            del self.streams[number], self.last_stored[number], self.last_dropped[number]
            changed[f"stream:{number}"] = None
        for number, stream in self.session.streams.items():
            self._add_stream(changed, number, stream)
        connection = self.session.connection
        about = (connection.state, connection.log_level, frozenset(connection.subscribed), connection.next_id)
        if changed or about != self.about:
            self.about = about
            changed["principal"] = connection.principal.encode()
            changed["about"] = _encode(_about(self.session))
        return changed

    def _add_stream(self, changed: dict[str, bytes | None], number: int, stream: Stream) -> None:
        pending = [id_ for _, id_ in self.endpoint.requests.get(stream, ())]
        if not (pending or stream.stored or (stream.resumable and stream.last) or number in self.streams):
            return
        state = (stream.last, stream.last_sent, stream.last_dropped, stream.ended, *pending)
        if state == self.streams.get(number):
            return
        self.streams[number] = state
        changed[f"stream:{number}"] = _encode(
            {
                "last": stream.last,
                "sent": stream.last_sent,
                "dropped": stream.last_dropped,
                "ended": stream.ended,
                "pending": pending,
                "batch": any(_in_batch(self.session, id_) for id_ in pending),
            }
        )
        before = self.last_stored.setdefault(number, stream.last_dropped)
        self.last_dropped.setdefault(number, stream.last_dropped)
        for count, event, _ in reversed(stream.stored):
            if count <= before:
                break
            changed[f"event:{number}-{count}"] = event
        self.last_stored[number] = max(before, stream.stored[-1][0] if stream.stored else 0)
        self._drop(changed, number, min(stream.last_dropped, before))
        self.last_dropped[number] = stream.last_dropped

    def _drop(self, changed: dict[str, bytes | None], number: int, last: int) -> None:
        """Remove the events of a stream up to the count ``last``."""
        for count in range(self.last_dropped[number] + 1, last + 1):
            changed[f"event:{number}-{count}"] = None


def restore_session(endpoint: Endpoint, id_: str, caller: Caller, fields: Fields) -> Session | None:
    """Add the session of a record to ``endpoint``. Its pending requests are answered with an error.

    Returns:
        The session; None if this server does not serve its revision.
    """
    about = json.loads(fields[b"about"])
    spec = endpoint.runtime.spec
    revision = spec["revisions"].get(about["revision"]) if about["revision"] in spec["server"]["revisions"] else None
    if revision is None or about["state"] not in spec["lifecycles"][revision["lifecycle"]]["states"]:
        return None
    connection = endpoint.runtime.connect(caller=caller)
    connection.negotiated = revision
    connection.state, connection.log_level, connection.next_id = about["state"], about["log_level"], about["next_id"]
    connection.capabilities, connection.server_capabilities = about["client"], about["server"]
    connection.subscribed = {*about["subscribed"]}
    held = budget.footprint(about["client"]) + sum(map(budget.footprint, about["subscribed"]))
    connection.budget.reserve(held)
    session = Session(id_, connection, endpoint.limits["stream_bytes"])
    states = {int(name[7:]): json.loads(value) for name, value in fields.items() if name.startswith(b"stream:")}
    for number in sorted(states):
        stream = session.general
        if number:
            session.next_number = number
            stream = session.open_stream()
        _restore_stream(stream, states[number], _events(fields, number), revision)
    session.next_number = max(session.next_number, about["next_number"])
    endpoint.add_session(session)
    return session


class TaskRecord:
    """What has been written about a task."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.clear()

    def clear(self) -> None:
        """Forget what has been written."""
        self.ended: bool | None = None

    def changes(self) -> dict[str, bytes | None]:
        """Return the fields that have changed since the last call."""
        task = self.task
        if task.ended == self.ended:
            return {}
        self.ended = task.ended
        about = {"tool": task.tool, "created": task.created_at, "ended": task.ended, "outcome": task.outcome}
        return {"principal": task.principal.encode(), "about": _encode(about)}


def restore_task(endpoint: Endpoint, tasks: Tasks, id_: str, caller: Caller, fields: Fields) -> None:
    """Add the task of a record to ``tasks``. If it has not ended, it fails."""
    about = json.loads(fields[b"about"])
    outcome = about["outcome"]
    if not about["ended"]:
        spec = endpoint.runtime.spec
        name = (*spec["negotiation"]["stateless"], spec["negotiation"]["preferred"])[0]
        outcome = {"error": outbound.wire_error(_lost(spec["revisions"][name]))}
    budget_ = endpoint.runtime.budget(caller.principal)
    tasks.adopt(id_, caller.principal, about["tool"], budget_, about["created"], outcome)


def named_session(endpoint: Endpoint, headers: Mapping[str, str]) -> str | None:
    """Return the id of the session that HTTP headers name."""
    return next((headers[name] for name in endpoint.session_headers if name in headers), None)


def named_task(spec: Spec, headers: Mapping[str, str]) -> str | None:
    """Return the id of the task that the HTTP headers of a stateless request name."""
    for name in spec["negotiation"]["stateless"]:
        revision = spec["revisions"][name]
        rules: Any = revision["http"]
        if headers.get(rules["version"].lower(), "").strip() != name:
            continue
        method: Any = revision["methods"].get(headers.get(rules["method"].lower(), "").strip(), {})
        if "extension" in method and method["extension"] == revision.get("tasks") and "named_by" in method:
            with contextlib.suppress(ValueError):  # the request is refused later
                return decode(headers.get(rules["name"].lower(), "").strip())
    return None


def is_stateless(spec: Spec, headers: Mapping[str, str]) -> bool:
    """Return whether HTTP headers name a stateless revision, which has no sessions."""
    revisions = [spec["revisions"][name] for name in spec["negotiation"]["stateless"]]
    return any(headers.get(each["http"]["version"].lower(), "").strip() == each["revision"] for each in revisions)


def _about(session: Session) -> dict[str, Any]:
    connection = session.connection
    assert connection.negotiated is not None
    return {
        "revision": connection.negotiated["revision"],
        "state": connection.state,
        "client": connection.capabilities,
        "server": connection.server_capabilities,
        "log_level": connection.log_level,
        "subscribed": sorted(connection.subscribed),
        "next_id": connection.next_id,
        "next_number": session.next_number,
    }


def _restore_stream(
    stream: Stream, state: Mapping[str, Any], events: list[tuple[int, bytes]], revision: Revision
) -> None:
    stream.restore(state["last"], state["sent"], state["dropped"], events)
    if state["pending"]:
        wire = outbound.wire_error(_lost(revision))
        responses = [messages.error_response(id_, wire, False) for id_ in state["pending"]]
        stream.respond(messages.batch(responses) if state["batch"] else responses[0], 200)
    elif state["ended"] and stream.number:  # stream 0 ends only with its replica
        stream.end()


def _events(fields: Fields, number: int) -> list[tuple[int, bytes]]:
    prefix = b"event:%d-" % number
    found = [(int(name[len(prefix) :]), event) for name, event in fields.items() if name.startswith(prefix)]
    return sorted(found)


def _in_batch(session: Session, id_: Id) -> bool:
    in_flight: Any = session.connection.in_flight
    exchange = in_flight.get(id_)
    return id_ in in_flight and (exchange is None or exchange.batch is not None)


def _lost(revision: Revision) -> outbound.Failure:
    return outbound.failure(ProtocolError("replica_lost"), revision["errors"])


def _encode(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
