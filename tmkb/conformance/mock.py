"""Serve a recording to any client, as an engine for the transports: messages in, effects out, no I/O.

A request gets the response that was recorded for a request of the same meaning: ids, the identity of the client and
metadata that changes from call to call do not count. A client of the other era of the protocol gets it translated.
"""

from __future__ import annotations

import difflib
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tmkb.conformance import eras, offer
from tmkb.conformance.faults import Fault, Faults
from tmkb.conformance.finder import LONGEST, Finder, answer_differences
from tmkb.conformance.scripts import Ask, Cancelled, Recording, Respond, Say, Script, Step, Wait
from tmkb.conformance.transcript import Transcript
from tmkb.errors import ProtocolError
from tmkb.protocol import headers as http_headers
from tmkb.protocol import messages, negotiation, outbound
from tmkb.protocol.budget import Budget
from tmkb.protocol.caller import ANONYMOUS, Caller
from tmkb.protocol.connection import Connection, Snapshot
from tmkb.protocol.effects import Disconnect, Drop, Send, Sent
from tmkb.protocol.messages import Id, Notification, Request, Response
from tmkb.schema import answers
from tmkb.schema.model import Revision, Spec
from tmkb.schema.values import JsonObject, JsonValue
from tmkb.server import server
from tmkb.server.log import Log
from tmkb.transport.probes import Condition

if TYPE_CHECKING:
    from tmkb.insight.observer import Observer

_SHOWN = 3  # differences in one note
_LISTED = 20  # differences in one error
_PAUSE = 0.01  # seconds between notifications and the response: the TypeScript client drops them if it comes at once
_WRONG_ID = 1_000_000  # what the fault `wrong_id` adds to a number


class Peer(Connection):
    """A client of a mock: its connection, and the scripts that are played for it."""

    def __init__(self, spec: Spec, caller: Caller) -> None:
        super().__init__(Snapshot(spec), caller=caller)
        self.plays: dict[Id, Play] = {}  # by request id
        self.waiting: dict[Id, tuple[Play, Id]] = {}  # by the id of a request to the client; with the recorded id
        self.counts: dict[int, int] = {}  # how often a script and those like it were played
        self.recorded_streams: dict[Id, Id] = {}  # the recorded ids of the requests in `listening`


class Play:
    """A script that is played for a request or a notification (``id`` is None) of a client."""

    def __init__(self, script: Script, peer: Peer, revision: Revision, message: Request | Notification) -> None:
        self.script = script
        self.peer = peer
        self.revision = revision
        self.params = message.params
        self.id: Id | None = message.id if isinstance(message, Request) else None
        self.position = 0  # of the next step
        self.answers: dict[Id, JsonObject] = {}  # of the client, by the recorded id of the question
        self.questions: dict[Id, JsonObject] = {}  # for a result, by recorded id
        self.first_question = 0  # its position
        self.skipped: set[Id] = set()  # questions that the client cannot be asked
        self.sent_ids: dict[Id, Id] = {}  # of requests to the client, by recorded id
        self.faults: Sequence[Fault] = ()
        self.responded = self.cancelled = False

    @property
    def next_step(self) -> Step | None:
        """The step after the current one; None at the end."""
        return next(iter(self.script.steps[self.position + 1 :]), None)

    @property
    def is_translated(self) -> bool:
        """Whether the recording and the client use different eras of the protocol."""
        return eras.is_stateless(self.revision) != eras.is_stateless(self.script.revision)

    @property
    def meta(self) -> JsonObject:
        """The metadata of the client's message."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}


class _Later(NamedTuple):
    """What a mock does at the time ``at`` for the request ``id`` of a client; None for other messages."""

    at: float
    play: Callable[[], list[Sent]]
    peer: Peer
    id: Id | None


class Mock:
    """A server that plays recorded conversations. It has the methods that transports need of an engine."""

    def __init__(
        self,
        transcripts: Sequence[Transcript],
        *,
        lenient: bool = False,
        faults: Faults | None = None,
        report: Callable[[str], None] = lambda _: None,
        revision: str | None = None,
    ) -> None:
        """Prepare the scripts.

        Args:
            transcripts: the recording.
            lenient: whether other arguments of a recorded tool or prompt get the nearest recorded response, other
                answers to questions are accepted, and the last response is repeated.
            faults: what goes wrong on purpose.
            report: receives a sentence for each message that does not match the recording.
            revision: see `Recording`.

        Raises:
            DocumentError: a matcher in a transcript cannot be turned into a value.
        """
        rules = _rules()
        self.recording = Recording(transcripts, rules, revision)
        self.lenient = lenient
        self.faults = faults or Faults([])
        self.report = report
        self.unmatched = 0  # messages
        self.identity = offer.identity(self.recording, transcripts)
        offered = offer.declared(self.recording)
        self.is_guessed = offered is None  # whether the client gets capabilities that were not recorded
        self.capabilities, self.instructions = offered or (offer.used(self.recording), None)
        self.spec = offer.spec(rules, self.recording, self.capabilities)
        self.log = Log(self.spec["server"]["log"], "warning")
        self.observer: Observer | None = None
        self.finder = Finder(self.recording, self.spec)
        self.counts: dict[int, int] = {}  # of requests without a session, see `Peer.counts`
        self.peers: list[Peer] = []
        self.budgets: dict[str, Budget] = {}
        self.conditions: dict[str, Condition] = {}
        self.later: list[_Later] = []

    # --- The methods for transports

    def connect(self, headers: Mapping[str, str] | None = None, caller: Caller = ANONYMOUS) -> Peer:
        """Return a connection for a new client. ``headers``: of the request, if it is the only one."""
        peer = Peer(self.spec, caller)
        peer.headers = headers
        self.peers.append(peer)
        return peer

    def budget(self, principal: str) -> Budget:
        """Return the memory budget of ``principal``."""
        return self.budgets.setdefault(principal, Budget(self.spec["server"]["limits"]["principal_bytes"]))

    def warm_up(self) -> None:
        """Do nothing: everything is prepared."""

    def handle(self, connection: Peer, line: bytes) -> list[Sent]:
        """Handle one line without its newline."""
        try:
            value = messages.decode(line)
        except ProtocolError as error:
            return self._other(connection, line, error)
        return self.handle_value(connection, value)

    def handle_value(self, connection: Peer, value: JsonValue) -> list[Sent]:
        """Handle a decoded message or batch."""
        if isinstance(value, list):
            return self._batch(connection, value)
        try:
            message = messages.read(value)
        except ProtocolError as error:
            return self._other(connection, value, error)
        if isinstance(message, Request):
            return self._request(connection, message)
        return (
            self._notified(connection, message)
            if isinstance(message, Notification)
            else self._answered(connection, message)
        )

    def handle_too_large(self, connection: Peer) -> list[Sent]:
        """Refuse a line that exceeds the size limit."""
        limit = self.spec["server"]["limits"]["message_bytes"]
        return self._refuse(connection, ProtocolError("message_too_large", limit=limit))

    def due(self) -> float | None:
        """Return the seconds until a delayed response is due; None without any."""
        return max(0.0, min(each.at for each in self.later) - time.monotonic()) if self.later else None

    def work(self) -> list[Sent]:
        """Send the delayed responses that are due."""
        now = time.monotonic()
        due = [each for each in self.later if each.at <= now]
        self.later = [each for each in self.later if each.at > now]
        return [sent for each in due for sent in each.play()]

    def end(self, connection: Peer) -> list[Sent]:
        """End the streams of subscriptions."""
        sent: list[Sent] = []
        for id_, (revision, _) in [*connection.listening.items()]:
            del connection.listening[id_]
            always: JsonObject = {**revision["objects"]["listen_result"].get("always", {})}
            result: JsonObject = {**always, "_meta": {str(revision.get("subscription")): id_}}
            sent += self._send_response(connection, revision, id_, {"result": result})
        return sent

    def abandon(self, connection: Peer) -> None:
        """Remove a connection."""
        self.later = [each for each in self.later if each.peer is not connection]
        self.peers = [each for each in self.peers if each is not connection]
        connection.budget.close()

    def stop(self) -> list[Sent]:
        """Drop the delayed responses."""
        self.later.clear()
        return []

    # --- Messages of the client

    def _request(self, peer: Peer, request: Request) -> list[Sent]:
        revision: Revision | None = None
        try:
            revision = negotiation.governing(self.spec, peer.negotiated, request, peer.headers)
            if peer.headers is not None:
                http_headers.check(self.spec, revision, peer.headers, request)
        except ProtocolError as error:
            return self._refuse(peer, error, request.id, revision)
        peer.in_flight[request.id] = None
        faults = self.faults.of(request)
        governing = revision

        def begin() -> list[Sent]:
            return self._safely(peer, request.id, governing, lambda: self._begin(peer, governing, request, faults))

        delay = sum(fault.seconds for fault in faults)
        if not delay:
            return begin()
        self.later.append(_Later(time.monotonic() + delay, begin, peer, request.id))
        return []

    def _begin(self, peer: Peer, revision: Revision, request: Request, faults: Sequence[Fault]) -> list[Sent]:
        """Play the script of a request, or do what only the mock knows. Raises ProtocolError."""
        if any(fault.kind == "silence" for fault in faults):
            return []
        error = next((fault.value for fault in faults if fault.kind == "error"), None)
        if error is not None:
            return self._send_response(peer, revision, request.id, {"error": error}, faults)
        rules: Any = revision["methods"].get(request.method, {})
        handler = rules.get("handler", "")
        if handler == "set_level" and request.params.get("level") in revision["logging"]["levels"]:
            peer.log_level = str(request.params["level"])
        play = self._resumed(peer, revision, request)
        if (
            play is None
            and (script := self._chosen(peer, revision, request)) is not None
            and not script.has_no_capabilities
        ):
            play = Play(script, peer, revision, request)
        if play is not None:
            play.faults = faults
            peer.plays[request.id] = play
            return self._negotiate(peer, request, self._advance(play))
        if handler == "listen":
            return self._listen(peer, revision, request)
        if handler in _OWN:
            response: JsonObject = {"result": _OWN[handler](self, peer, revision, request)}
            return self._negotiate(peer, request, self._send_response(peer, revision, request.id, response, faults))
        if "capability" in rules and not negotiation.declares(self.capabilities, rules["capability"]):
            raise ProtocolError("method_not_found", method=request.method)
        raise self._not_recorded(revision, request)

    def _notified(self, peer: Peer, message: Notification) -> list[Sent]:
        revision = peer.revision
        rules: Any = (negotiation.describing(self.spec, message.params.get("_meta")) or revision)["methods"]
        if rules.get(message.method, {}).get("role") == "cancelled":
            return self._cancel(peer, message.params.get("requestId"))
        scripts = [each for each in self.recording.notifications if not self.finder.differences(each, message)]
        number = self._count(peer, scripts[0].number) if scripts else 0
        if number >= len(scripts):
            return []
        return self._go_on(Play(scripts[number], peer, revision, message))

    def _answered(self, peer: Peer, response: Response) -> list[Sent]:
        """Continue the script that waits for a response of the client."""
        if response.id is None or response.id not in peer.waiting:
            return []
        play, recorded = peer.waiting.pop(response.id)
        play.answers[recorded] = response.value
        return self._go_on(play)

    def _cancel(self, peer: Peer, request_id: JsonValue) -> list[Sent]:
        id_ = messages.readable_id({"id": request_id})
        if id_ is None or not peer.is_in_flight(id_):
            return []
        play = peer.plays.pop(id_, None)
        peer.listening.pop(id_, None)
        sent: list[Sent] = []
        if play is not None:
            later = [
                n for n, step in enumerate(play.script.steps) if n >= play.position and isinstance(step, Cancelled)
            ]
            if later:
                play.position, play.cancelled = later[0], True
                sent = self._go_on(play)
            peer.waiting = {key: each for key, each in peer.waiting.items() if each[0] is not play}
        self.later = [each for each in self.later if each.peer is not peer or each.id != id_]
        peer.in_flight.pop(id_, None)
        return [*sent, Drop(peer, id_)]

    def _batch(self, peer: Peer, values: list[JsonValue]) -> list[Sent]:
        if not values or not peer.revision["message"]["batch"]:
            return self._other(peer, values, ProtocolError("invalid_request"))
        sent = [each for value in values for each in self.handle_value(peer, value)]
        responses = [each for each in sent if isinstance(each, Send) and each.is_response]
        if not responses:
            return sent
        joined = Send(peer, messages.batch([each.message for each in responses]), responses[0].about, is_response=True)
        return [*(each for each in sent if each not in responses), joined]

    def _other(self, peer: Peer, value: JsonValue | bytes, error: ProtocolError) -> list[Sent]:
        """Play the script of a message that is not JSON-RPC; without one, send ``error``."""
        scripts = [each for each in self.recording.others if type(each.value) is type(value) and each.value == value]
        if not scripts:
            return self._refuse(peer, error, None if isinstance(value, bytes) else messages.readable_id(value))
        script = scripts[min(self._count(peer, scripts[0].number), len(scripts) - 1)]
        return self._go_on(Play(script, peer, peer.revision, Notification("", {})))

    # --- Scripts

    def _chosen(self, peer: Peer, revision: Revision, request: Request) -> Script | None:
        """Return the script for a request; None if there is none. Raises ProtocolError if all have been played."""
        if like := self.finder.like(revision, request):
            return self._next(peer, request, like)
        near = self.finder.nearest(revision, request) if self.lenient else None
        named: Any = self.finder.named_by(request.method)
        if near is None or named is None or near.params.get(named) != request.params.get(named):
            return None
        return near

    def _next(self, peer: Peer, request: Request, like: list[Script]) -> Script:
        """Return the first of the scripts ``like`` each other that was not played yet, or the last again."""
        number = self._count(peer, like[0].number)
        if number < len(like):
            return like[number]
        if self.lenient or all(each.response == like[-1].response for each in like):
            return like[-1]
        times = f"{len(like)} different responses were recorded, and this is request {number + 1}"
        raise self._fail(request.method, like[-1].place, [f"{times}; --lenient repeats the last"])

    def _count(self, peer: Peer, number: int) -> int:
        """Return how often the script was played for this client, and count once more."""
        counts = peer.counts if peer.headers is None else self.counts
        counts[number] = counts.get(number, 0) + 1
        return counts[number] - 1

    def _not_recorded(self, revision: Revision, request: Request) -> ProtocolError:
        """Report a request without a script, and return the error for it."""
        if (near := self.finder.nearest(revision, request)) is not None:
            return self._fail(request.method, near.place, self.finder.differences(near, request, False))
        known = [*dict.fromkeys(each.method for each in self.recording.requests)]
        similar = difflib.get_close_matches(request.method[:LONGEST], known, 1, 0.0)
        place = next((each.place for each in self.recording.requests if each.method in similar), "none")
        return self._fail(request.method, place, [f"method: expected {similar[0]}"] if similar else [])

    def _fail(self, method: str, place: str, differences: Sequence[str]) -> ProtocolError:
        """Count and report a message that does not match; return the error for it."""
        self.unmatched += 1
        shown = "; ".join(differences[:_SHOWN]) + "; …" * (len(differences) > _SHOWN)
        self.report(f"{method} is not recorded like this. Nearest: {place}. {shown}")
        first = differences[0] if differences else ""
        listed: list[JsonValue] = [*differences[:_LISTED]]
        return ProtocolError("not_recorded", method=method, nearest=place, difference=first, differences=listed)

    # --- Steps

    def _advance(self, play: Play) -> list[Sent]:
        """Play the steps of a script until it waits for the client, or ends. Raises ProtocolError."""
        sent: list[Sent] = []
        while play.position < len(play.script.steps):
            step = play.script.steps[play.position]
            if isinstance(step, Say):
                sent += self._say(play, step.message)
                if sent and isinstance(play.next_step, Respond):
                    play.position += 1
                    self.later.append(_Later(time.monotonic() + _PAUSE, lambda: self._go_on(play), play.peer, play.id))
                    return sent
            elif isinstance(step, Ask):
                sent += self._ask(play, step)
            elif isinstance(step, Respond):
                if play.id in play.peer.listening:
                    return sent
                sent += self._respond(play, step.message)
            elif self._waits(play, step):
                return [*sent, *self._input_required(play)]
            play.position += 1
        return [*sent, *self._finish(play)]

    def _go_on(self, play: Play) -> list[Sent]:
        """Advance after a pause or an answer, unless the client has cancelled the request."""
        if play.id is None or play.responded:
            return self._safely(play.peer, None, play.revision, lambda: self._advance(play))
        if not play.peer.is_in_flight(play.id):
            return []
        return self._safely(play.peer, play.id, play.revision, lambda: self._advance(play))

    def _safely(self, peer: Peer, id_: Id | None, revision: Revision, play: Callable[[], list[Sent]]) -> list[Sent]:
        """Return the effects of ``play``. An error becomes the response to the request ``id_``, if there is one."""
        try:
            return play()
        except ProtocolError as error:
            failure = error
        except Exception as error:  # a recording may contain what no server may send
            self.unmatched += 1
            self.report(f"The recording cannot be played here: {type(error).__name__}: {error}")
            failure = ProtocolError("internal_error", ref="mock")
        if id_ is None:
            return []
        peer.in_flight.pop(id_, None)
        return self._refuse(peer, failure, id_, revision)

    def _finish(self, play: Play) -> list[Sent]:
        if play.id is None or play.responded or any(isinstance(step, Cancelled) for step in play.script.steps):
            return []
        if play.id in play.peer.listening:
            return []
        place = play.script.place
        raise self._fail(play.script.method, place, [f"response: {place} has none, because the recording ends before"])

    def _say(self, play: Play, message: JsonValue) -> list[Sent]:
        if not isinstance(message, dict) or "method" not in message:
            data = message.encode() if isinstance(message, str) else messages.encode(message)
            return [Send(play.peer, data, self._about(play), is_response=play.id is None and not play.script.method)]
        method, params = str(message["method"]), message.get("params")
        rules: Any = play.revision["methods"].get(method)
        if rules is None and play.is_translated:
            return []
        rules = rules or {}
        if rules.get("role") == "acknowledged" and play.id is not None:
            return self._acknowledge(play, message)
        stream = _stream(play.script.revision, params)
        if "listened" in rules and (play.is_translated or stream is not None):
            return self._broadcast(play, method, rules, stream, params if isinstance(params, dict) else {})
        return self._notify(play, message, rules)

    def _notify(self, play: Play, message: JsonObject, rules: Any) -> list[Sent]:
        """Return a notification for the client of ``play``, if it wants that: with its progress token and ids."""
        params = message.get("params")
        if isinstance(params, dict):
            if play.is_translated:
                params = eras.params(str(message["method"]), params, play.script.revision, play.revision)
                if not self._is_wanted(play, rules, params):
                    return []
            if "progressToken" in params and params["progressToken"] == play.script.token:
                if "progressToken" not in play.meta:
                    return []
                params = {**params, "progressToken": play.meta["progressToken"]}
            id_ = messages.readable_id({"id": params.get("requestId")})
            if rules.get("role") == "cancelled" and id_ in play.sent_ids:
                params = {**params, "requestId": play.sent_ids[id_]}
        sent: JsonObject = {**message, **({} if params is None else {"params": params})}
        about = None if {"lists", "subscribed"} & rules.keys() else self._about(play)
        return [Send(play.peer, messages.encode(sent), about)]

    def _about(self, play: Play) -> Id | None:
        return None if play.responded else play.id

    def _is_wanted(self, play: Play, rules: Any, params: JsonObject) -> bool:
        """Return whether a client of the other era gets a notification: its log level and subscriptions decide."""
        if rules.get("role") == "log":
            levels = play.revision["logging"]["levels"]
            wanted: Any = play.peer.log_level
            if eras.is_stateless(play.revision):
                wanted = play.meta.get(play.revision["request_metadata"]["log_level"], "")
                if wanted not in levels:
                    return False
            level = params.get("level")
            return wanted is None or level not in levels or levels.index(level) >= levels.index(wanted)
        return "subscribed" not in rules or params.get(rules["subscribed"]) in play.peer.subscribed

    def _broadcast(self, play: Play, method: str, rules: Any, recorded: JsonValue, params: JsonObject) -> list[Sent]:
        """Return a notification for each stream that listens to it. ``recorded``: the id of the recorded stream."""
        params = eras.params(method, params, play.script.revision, play.revision)
        streams = [(peer, id_, each[1]) for peer in self.peers for id_, each in peer.listening.items()]
        same = [each for each in streams if each[0].recorded_streams.get(each[1]) == recorded]
        sent: list[Sent] = []
        for peer, id_, wanted in same or [each for each in streams if each[1] not in each[0].recorded_streams]:
            chosen = wanted.get(rules["listened"])
            subject = params.get(rules.get("subscribed", ""))
            if chosen is True or (isinstance(chosen, list) and subject in chosen):
                meta: Any = params.get("_meta") or {}
                own: JsonObject = {**params, "_meta": {**meta, str(play.revision.get("subscription")): id_}}
                sent.append(Send(peer, messages.notification(method, own), id_))
        return sent

    def _acknowledge(self, play: Play, message: JsonObject) -> list[Sent]:
        params: Any = message.get("params") or {}
        assert play.id is not None
        honoured = params.get("notifications")
        play.peer.listening[play.id] = (play.revision, honoured if isinstance(honoured, dict) else {})
        if play.script.id is not None:
            play.peer.recorded_streams[play.id] = play.script.id
        meta = {**(params.get("_meta") or {}), play.revision["subscription"]: play.id}
        return [Send(play.peer, messages.encode({**message, "params": {**params, "_meta": meta}}), play.id)]

    def _ask(self, play: Play, step: Ask) -> list[Sent]:
        """Ask the client, with a request or in a result."""
        params = (
            eras.params(step.method, step.params, play.script.revision, play.revision)
            if play.is_translated
            else step.params
        )
        if play.revision["client_requests"] == "in_result":
            rules: Any = play.revision["methods"].get(play.script.method, {})
            can_answer = "inputResponses" in answers.properties(rules.get("params"))
            if play.responded or step.method not in play.revision["methods"] or not can_answer:
                play.skipped.add(step.id)
            elif step.id not in play.answers:
                if not play.questions:
                    play.first_question = play.position
                play.questions[step.id] = {"method": step.method, **({"params": params} if params else {})}
            return []
        id_: Id = step.id
        while id_ in play.peer.waiting:
            id_ = f"{id_}-again"
        play.peer.waiting[id_] = (play, step.id)
        play.sent_ids[step.id] = id_
        sent: JsonObject = {**step.message, "id": id_} | ({"params": params} if play.is_translated and params else {})
        return [Send(play.peer, messages.encode(sent), self._about(play))]

    def _waits(self, play: Play, step: Wait | Cancelled) -> bool:
        """Return whether the script has to wait. Raises ProtocolError if the client answers something else."""
        if isinstance(step, Cancelled):
            return not play.cancelled
        if step.id in play.skipped:
            return False
        if step.id not in play.answers:
            return True
        answer = play.answers[step.id]
        if differences := answer_differences(step.answer, answer):
            siblings = self.finder.siblings(play.script, play.revision)
            sibling = next((each for each in siblings if self._fits(each, play, answer)), None)
            if sibling is not None:
                play.script = sibling
            elif not self.lenient:
                raise self._fail("answer of the client", play.script.place, differences)
        return False

    def _fits(self, other: Script, play: Play, answer: JsonObject) -> bool:
        """Return whether ``other`` has the steps that were played so far, and then ``answer``."""
        before, here = other.steps[: play.position], other.steps[play.position : play.position + 1]
        if [type(step) for step in before] != [type(step) for step in play.script.steps[: play.position]]:
            return False
        return bool(here) and isinstance(here[0], Wait) and not answer_differences(here[0].answer, answer)

    def _input_required(self, play: Play) -> list[Sent]:
        """Return the result with the questions that have no answer yet, if the script waits for some."""
        if not play.questions or play.id is None:
            return []
        always: JsonObject = {**play.revision["objects"]["input_required_result"].get("always", {})}
        asked: JsonObject = {str(id_): question for id_, question in play.questions.items()}
        state = f"{play.script.number}:{play.first_question}"
        result: JsonObject = {**always, "inputRequests": asked, "requestState": state}
        play.responded = True
        return self._send_response(
            play.peer, play.revision, play.id, {"result": self._identified(result, play.revision)}, play.faults
        )

    def _resumed(self, peer: Peer, revision: Revision, request: Request) -> Play | None:
        """Return the play that a request with answers to our questions continues; None for another request."""
        number, _, position = str(request.params.get("requestState", "")).partition(":")
        answers = request.params.get("inputResponses")
        if not (_is_small(number) and _is_small(position)) or not eras.is_stateless(revision):
            return None
        script = next((each for each in self.recording.requests if each.number == int(number)), None)
        if script is None or eras.is_stateless(script.revision) or script.method != request.method:
            return None
        play = Play(script, peer, revision, request)
        play.position = int(position)
        for step in script.steps:
            if isinstance(step, Ask) and isinstance(answers, dict) and str(step.id) in answers:
                play.answers[step.id] = {"result": answers[str(step.id)]}
        return play

    def _respond(self, play: Play, message: JsonObject) -> list[Sent]:
        """Return the recorded response, for the client's request and in its era."""
        if play.id is None or play.responded:
            return []
        old, new = play.script.revision, play.revision
        result, error = message.get("result"), message.get("error")
        if play.is_translated and isinstance(result, dict):
            message = {**message, "result": eras.result(play.script.method, result, old, new, self.identity)}
        elif play.is_translated and isinstance(error, dict):
            message = {**message, "error": eras.error(error, old, new)}
        play.responded = True
        play.peer.plays.pop(play.id, None)
        return self._send_response(play.peer, new, play.id, message, play.faults)

    def _send_response(
        self, peer: Peer, revision: Revision, id_: Id, message: JsonObject, faults: Sequence[Fault] = ()
    ) -> list[Sent]:
        """Return the response to the request ``id_``, with the faults that change responses."""
        peer.in_flight.pop(id_, None)
        kinds = {fault.kind: fault.value for fault in faults}
        if "close" in kinds:
            return [Disconnect(peer, id_)]
        shown: Id = id_
        if "wrong_id" in kinds:
            shown = id_ + _WRONG_ID if isinstance(id_, int) else f"{id_}-wrong"
        data = messages.encode({"jsonrpc": "2.0", **message, "id": shown})
        if "truncated" in kinds:
            data = data[: len(data) // 2]
        if "not_json" in kinds:
            data = str(kinds["not_json"]).encode()
        response = Send(peer, data, id_, is_response=True, status=eras.status(message.get("error"), revision))
        return [Send(peer, data, id_), response] if "duplicate" in kinds else [response]

    def _refuse(
        self, peer: Peer, error: ProtocolError, id_: Id | None = None, revision: Revision | None = None
    ) -> list[Sent]:
        effects = outbound.send_error(peer, error, id_, revision)
        return [effect for effect in effects if isinstance(effect, Send)]

    # --- What the mock does by itself

    def _negotiate(self, peer: Peer, request: Request, sent: list[Sent]) -> list[Sent]:
        """Remember the revision that a response to a handshake selects."""
        if self.finder.negotiates(request.method) is None:
            return sent
        for each in sent:
            value: Any = messages.decode(each.message) if isinstance(each, Send) and each.is_response else None
            result = value.get("result") if isinstance(value, dict) else None
            version = result.get("protocolVersion") if isinstance(result, dict) else None
            known = self.spec["revisions"].get(version) if isinstance(version, str) else None
            if known is not None and not eras.is_stateless(known):
                peer.negotiated = known
        return sent

    def _identified(self, result: JsonObject, revision: Revision) -> JsonObject:
        meta: JsonObject = {str(revision.get("identity")): self.identity}
        return {**result, "_meta": meta}

    def _initialize(self, _: Peer, revision: Revision, __: Request) -> JsonObject:
        result: JsonObject = {
            "protocolVersion": revision["revision"],
            "capabilities": self._declared(revision),
            "serverInfo": self.identity,
        }
        return result | ({} if self.instructions is None else {"instructions": self.instructions})

    def _discover(self, _: Peer, revision: Revision, __: Request) -> JsonObject:
        supported: list[JsonValue] = [*negotiation.versions(self.spec)]
        result: JsonObject = {
            **revision["objects"]["discover_result"].get("always", {}),
            "supportedVersions": supported,
            "capabilities": self._declared(revision),
        }
        result |= {} if self.instructions is None else {"instructions": self.instructions}
        return self._identified(result, revision)

    def _declared(self, revision: Revision) -> JsonObject:
        """Return the capabilities in the fields of ``revision``; tell once that they are guessed, if they are."""
        if self.is_guessed:
            self.is_guessed = False
            names = ", ".join(self.capabilities) or "none"
            self.report(
                f"The capabilities of the server were not recorded. The client gets those that it used: {names}."
            )
        return outbound.fit(revision, "server_capabilities", self.capabilities)

    def _subscribe(self, peer: Peer, _: Revision, request: Request) -> JsonObject:
        peer.subscribed.add(str(request.params.get("uri")))
        return {}

    def _unsubscribe(self, peer: Peer, _: Revision, request: Request) -> JsonObject:
        peer.subscribed.discard(str(request.params.get("uri")))
        return {}

    def _listen(self, peer: Peer, revision: Revision, request: Request) -> list[Sent]:
        """Open a stream for the notifications that the recorded server declares."""
        requested = request.params.get("notifications")
        honoured: JsonObject = {}
        for rules in revision["methods"].values():
            key = rules.get("listened")
            wanted = requested.get(key) if isinstance(requested, dict) and key is not None else None
            if key is not None and wanted and negotiation.declares(self.capabilities, rules["capability"]):
                honoured[key] = wanted
        peer.listening[request.id] = (revision, honoured)
        params: JsonObject = {"_meta": {str(revision.get("subscription")): request.id}, "notifications": honoured}
        name = outbound.method_of(revision, "acknowledged")
        return [Send(peer, messages.notification(name, params), request.id)]


_OWN: dict[str, Callable[[Mock, Peer, Revision, Request], JsonObject]] = {
    "initialize": Mock._initialize,
    "discover": Mock._discover,
    "ping": lambda *_: {},
    "set_level": lambda *_: {},
    "subscribe": Mock._subscribe,
    "unsubscribe": Mock._unsubscribe,
}


@functools.cache
def _rules() -> Spec:
    """Return a spec with every revision."""
    return server.protocol()


def _is_small(digits: str) -> bool:
    return digits.isascii() and digits.isdecimal() and len(digits) < 10


def _stream(revision: Revision, params: Any) -> JsonValue:
    """Return the id of the stream that a notification belongs to; None without one."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get(revision.get("subscription")) if isinstance(meta, dict) else None
