"""Read transcripts as scripts: what the server sent for each request, in order, and what it waited for.

A script belongs to one request or notification of the client. Its steps are the server's notifications, its requests to
the client, the client's answers to those, and the response.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tmkb.conformance import eras
from tmkb.conformance.examples import NoExampleError, example
from tmkb.conformance.matchers import PLACEHOLDER, Bindings
from tmkb.conformance.transcript import Transcript
from tmkb.errors import DocumentError, Problem, ProtocolError
from tmkb.protocol import messages, negotiation
from tmkb.protocol.messages import Id, Notification, Request, Response
from tmkb.schema.model import Revision, Spec
from tmkb.schema.values import JsonObject, JsonValue

RETRY = frozenset(("inputResponses", "requestState"))  # the params with which a client repeats a request


class Say(NamedTuple):
    """The server sends a notification, or something that is no response to a request; a string is not JSON."""

    message: JsonValue


class Ask(NamedTuple):
    """The server sends the request ``message``. ``id``: its recorded id."""

    id: Id
    method: str
    message: JsonObject

    @property
    def params(self) -> JsonObject:
        """The params; empty without any."""
        params = self.message.get("params")
        return params if isinstance(params, dict) else {}


class Wait(NamedTuple):
    """The server waits for the response to its request ``id``. ``answer``: the recorded one."""

    id: Id
    answer: JsonObject


class Cancelled(NamedTuple):
    """The server waits until the client cancels the request."""


class Respond(NamedTuple):
    """The server sends the response to the request."""

    message: JsonObject


Step = Say | Ask | Wait | Cancelled | Respond


@dataclass(eq=False, slots=True)
class Script:
    """What happened after one message of the client.

    Attributes:
        place: the file and the number of the turn, for messages.
        revision: the one that governed the message.
        method: empty for a message that is not JSON-RPC.
        value: the decoded message, or its bytes if it was not JSON.
    """

    number: int
    place: str
    revision: Revision
    method: str
    params: JsonObject
    id: Id | None
    value: JsonValue | bytes = None
    steps: list[Step] = field(default_factory=list)

    @property
    def response(self) -> JsonObject | None:
        """The response without its id; None if none was recorded."""
        message = next((step.message for step in self.steps if isinstance(step, Respond)), None)
        return None if message is None else {key: inner for key, inner in message.items() if key != "id"}

    @property
    def result(self) -> JsonObject | None:
        """The result in the response; None if there is none."""
        result = (self.response or {}).get("result")
        return result if isinstance(result, dict) else None

    @property
    def has_no_capabilities(self) -> bool:
        """Whether it is a handshake of whose result only the type is recorded, as in openings."""
        rules: Any = self.revision["methods"].get(self.method, {})
        negotiates = rules.get("result_shape") in ("initialize_result", "discover_result")
        return negotiates and self.result is not None and "capabilities" not in self.result

    @property
    def token(self) -> JsonValue:
        """The progress token of the request."""
        meta = self.params.get("_meta")
        return meta.get("progressToken") if isinstance(meta, dict) else None


class Recording:
    """The scripts of some transcripts, in recorded order."""

    def __init__(self, transcripts: Sequence[Transcript], spec: Spec, revision: str | None = None) -> None:
        """Read the transcripts.

        Args:
            transcripts: what was recorded.
            spec: the rules of all revisions.
            revision: the one for transcripts that list it; by default, the newest that they list.

        Raises:
            DocumentError: if no text is found for a matcher ``$re``.
        """
        self.spec = spec
        self.requests: list[Script] = []
        self.notifications: list[Script] = []
        self.others: list[Script] = []  # of messages that are not JSON-RPC
        self.placeholders: set[str] = set()  # of redacted values that the server sent
        for transcript in transcripts:
            chosen = revision if revision in transcript.revisions else max(transcript.revisions)
            _Reader(self, transcript, spec["revisions"].get(chosen)).read()
        self.linked = list(_linked(self.requests))

    def results(self, handler: str, member: str) -> Iterator[tuple[Revision, JsonObject]]:
        """Yield the results with ``member`` of the methods with ``handler``, each with its revision."""
        for script in self.requests:
            rules: Any = script.revision["methods"].get(script.method, {})
            if rules.get("handler") == handler and script.result is not None and member in script.result:
                yield script.revision, script.result


class _Reader:
    """Reads one transcript into a recording."""

    def __init__(self, recording: Recording, transcript: Transcript, revision: Revision | None) -> None:
        self.recording = recording
        self.transcript = transcript
        self.spec = recording.spec
        self.revision = revision or negotiation.preferred(self.spec)
        self.negotiated = negotiation.preferred(self.spec) if eras.is_stateless(self.revision) else self.revision
        self.bindings: Bindings = {}
        self.open: dict[Id, Script] = {}  # without a response, by id
        self.asked: dict[Id, Script] = {}  # by the id of a request of the server
        self.unread: list[Script] = []  # of this turn: messages without an id that the server can read
        self.last = Script(0, "", self.revision, "", {}, None)  # the receiver of messages that belong to no request

    def read(self) -> None:
        """Add the scripts of all turns. Raises DocumentError."""
        name = self.revision["revision"]
        opening, turns = self.transcript.opening(name), self.transcript.turns(name)
        for number, turn in enumerate([*opening, *turns], 1 - len(opening)):
            place = f"{f'turn {number}' if number > 0 else 'the opening'} of {self.transcript.path}"
            line = turn.bound(self.bindings)
            try:
                sent: JsonValue | bytes = messages.decode(line)
            except ProtocolError:
                sent = line
            self.unread.clear()
            owner = self._send(sent, place)
            try:
                expected = [example(each, self.bindings) for each in turn.expect]
            except NoExampleError as error:
                file = self.transcript.path
                raise DocumentError([Problem("no_matching_text", file, text=str(error), turn=number)]) from error
            self.recording.placeholders.update(PLACEHOLDER.findall(messages.compact(expected)))
            for message in expected:
                self._receive(message, owner)

    def _send(self, sent: JsonValue | bytes, place: str) -> Script:
        """Add what the client sent; return the script that the server's next messages belong to."""
        if isinstance(sent, list) and sent and self.revision["message"]["batch"]:
            return [self._send(each, place) for each in sent][-1]
        try:
            message = messages.read(sent) if not isinstance(sent, bytes) else None
        except ProtocolError:
            message = None
        if isinstance(message, Request):
            script = self._script(message.method, message.params, message.id, self._governing(message), place)
            self.recording.requests.append(script)
            self.open[message.id] = script
        elif isinstance(message, Notification):
            script = self._notify(message, place)
        elif isinstance(message, Response) and message.id in self.asked:
            script = self.asked.pop(message.id)
            script.steps.append(Wait(message.id, message.value))
        elif isinstance(message, Response):
            return self.last
        else:
            script = self._other(sent, place)
        self.last = script
        return script

    def _notify(self, message: Notification, place: str) -> Script:
        rules: Any = self.revision["methods"].get(message.method, {})
        id_ = messages.readable_id({"id": message.params.get("requestId")})
        if rules.get("role") == "cancelled" and id_ is not None and id_ in self.open:
            self.open[id_].steps.append(Cancelled())
            return self.open[id_]
        script = self._script(message.method, message.params, None, self.revision, place)
        self.recording.notifications.append(script)
        return script

    def _other(self, sent: JsonValue | bytes, place: str) -> Script:
        script = self._script("", {}, None, self.revision, place)
        script.value = sent
        self.recording.others.append(script)
        self.unread.append(script)
        return script

    def _script(self, method: str, params: JsonObject, id_: Id | None, revision: Revision, place: str) -> Script:
        numbered = self.recording
        number = len(numbered.requests) + len(numbered.notifications) + len(numbered.others)
        return Script(number, place, revision, method, params, id_)

    def _governing(self, message: Request) -> Revision:
        try:
            return negotiation.governing(self.spec, self.negotiated, message)
        except ProtocolError:
            return self.revision

    def _receive(self, message: JsonValue, owner: Script) -> None:
        """Add a message of the server to its script."""
        if isinstance(message, list):
            for each in message:
                self._receive(each, owner)
            return
        try:
            read = messages.read(message)
        except ProtocolError:
            owner.steps.append(Say(message))
            return
        if isinstance(read, Response) and read.id in self.open:
            self.open.pop(read.id).steps.append(Respond(read.value))
        elif isinstance(read, Response) and self.unread:
            self.unread.pop(0).steps.append(Say(message))
        elif isinstance(read, Request) and isinstance(message, dict):
            self.asked[read.id] = owner
            owner.steps.append(Ask(read.id, read.method, message))
        else:
            (self._about(read, owner) if isinstance(read, Notification) else owner).steps.append(Say(message))

    def _about(self, message: Notification, owner: Script) -> Script:
        """Return the script that a notification of the server belongs to: the one with its progress token, if any."""
        token = message.params.get("progressToken")
        having = (script for script in self.open.values() if token is not None and script.token == token)
        return next(having, owner)


def _linked(requests: Sequence[Script]) -> Iterator[Script]:
    """Yield scripts of stateless requests with questions in their results, as a server with a handshake asks them.

    The questions become requests of the server, and the requests that repeat the first one with answers, the answers.
    """
    for script in requests:
        if _questions(script) and not is_retry(script):
            yield _with_questions(script, requests)


def _with_questions(script: Script, requests: Sequence[Script]) -> Script:
    joined = Script(script.number, script.place, script.revision, script.method, script.params, script.id)
    current: Script | None = script
    while current is not None:
        questions = _questions(current)
        joined.steps += [step for step in current.steps if not (questions and isinstance(step, Respond))]
        ids = {key: f"{current.number}-{key}" for key in questions}
        joined.steps += [
            Ask(ids[key], str(each["method"]), {"jsonrpc": "2.0", **each}) for key, each in questions.items()
        ]
        retry = next((each for each in requests if each.number > current.number and _repeats(each, current)), None)
        answers: Any = {} if retry is None else retry.params.get("inputResponses")
        answered = [key for key in questions if isinstance(answers, dict) and key in answers]
        joined.steps += [Wait(ids[key], {"result": answers[key]}) for key in answered]
        current = retry if questions else None
    return joined


def _questions(script: Script) -> dict[str, Any]:
    """Return the questions in the result of a script, by key."""
    asked = (script.result or {}).get("inputRequests") if eras.is_stateless(script.revision) else None
    if not isinstance(asked, dict):
        return {}
    return {key: each for key, each in asked.items() if isinstance(each, dict) and "method" in each}


def is_retry(script: Script) -> bool:
    """Return whether the request repeats another one with answers to questions."""
    return not RETRY.isdisjoint(script.params)


def _repeats(later: Script, script: Script) -> bool:
    """Return whether the request ``later`` repeats that of ``script`` with answers to its questions."""
    state = (script.result or {}).get("requestState")
    if later.method != script.method or not is_retry(later) or later.params.get("requestState") != state:
        return False
    kept = [{key: each.params[key] for key in each.params if key not in (*RETRY, "_meta")} for each in (later, script)]
    return kept[0] == kept[1]
