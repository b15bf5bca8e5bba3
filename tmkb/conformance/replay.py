"""Replay a transcript against a server, and compare its messages with the expected ones.

A transcript with the key ``recorded`` is one observation of a server. There, the order of independent messages is no
requirement, and silence is only checked by the messages of later turns. Over HTTP, it may lack notifications that
belong to no request: a client receives those only while it has a general stream, which it may open at any time.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jsonschema

from tmkb.conformance import match, matchers, transcript
from tmkb.conformance.matchers import Bindings
from tmkb.conformance.redaction import Redactor
from tmkb.conformance.targets import Target, answers, is_settled
from tmkb.conformance.transcript import Transcript, Turn
from tmkb.conformance.translation import Translation
from tmkb.schema.values import JsonValue

_DIGITS = 9  # of the number of a placeholder
_IDENTITY = "serverInfo"  # the end of the key of a server's identity: a key of `initialize`, and a key of `_meta`
_MAX_SILENT = 2  # requests one after the other without a response within the timeout, after which no more are sent


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one turn: the messages that arrived, and how they differ from the expected ones.

    Attributes:
        number: from 1; 0 is the opening; the number after the last turn is the end of input.
        answered: False if the expected or pending response did not arrive.
        skipped: why the turn was not sent; empty if it was.
        sent: the line, as text.
        expected: the messages that were compared with ``actual``.
        seconds: how long the turn took.
        unrecorded: the methods of notifications that belong to no request, and that the recording does not have.
    """

    number: int
    about: str
    actual: list[JsonValue]
    differences: list[str]
    answered: bool = True
    skipped: str = ""
    sent: str = ""
    expected: list[JsonValue] = field(default_factory=list)
    seconds: float = 0.0
    unrecorded: list[str] = field(default_factory=list)


def replay(recording: Transcript, revision: str, target: Target, record: bool = False) -> Generator[Result]:
    """Replay ``recording`` under ``revision`` on ``target`` and close it; yield a result for each turn.

    If the opening fails, its result is the only one. With ``record``, a turn without expectations waits for the
    response to its request, unless a later turn cancels the request or expects the response.
    """
    opening, turns = recording.opening(revision), recording.turns(revision)
    results = _replayed(opening, turns, target, record, relaxed=recording.is_recorded)
    with contextlib.closing(results):
        yield from _without_secrets(recording, results)


def replay_translated(recording: Transcript, translation: Translation, target: Target) -> Iterator[Result]:
    """Replay ``recording`` under another revision, as ``translation`` says; see `replay`."""
    opening, turns = translation.opening, translation.turns
    results = _replayed(opening, turns, target, relaxed=True, received=translation.received)
    yield from _without_secrets(recording, results)


def _without_secrets(recording: Transcript, results: Iterable[Result]) -> Iterator[Result]:
    """Yield the results; those of a redacted recording without secrets, so that neither reports nor files have any."""
    redactor = Redactor(numbered=_placeholders(recording)) if recording.is_redacted else None
    for each in results:
        if redactor is None:
            yield each
            continue
        with contextlib.suppress(RecursionError):  # neither a report nor a file can contain such a message
            each.actual[:] = [redactor.message(message) for message in each.actual]
        each.differences[:] = map(redactor.text, each.differences)
        yield replace(each, sent=redactor.text(each.sent))


def _placeholders(recording: Transcript) -> int:
    """Return the highest number of a placeholder in a recording."""
    names = matchers.PLACEHOLDER.findall(json.dumps(recording.value, default=str))
    return max((int(name.rpartition("-")[2][:_DIGITS]) for name in names), default=0)


def _replayed(
    opening: Sequence[Turn],
    turns: Sequence[Turn],
    target: Target,
    record: bool = False,
    relaxed: bool = False,
    received: Callable[[Sequence[JsonValue]], Sequence[JsonValue]] = list,
) -> Generator[Result]:
    """Replay ``turns`` after ``opening``. ``received`` converts the messages before they are compared."""
    conversation = _Conversation(turns, target, record, relaxed, received)
    failed = False
    try:
        for turn in opening:
            actual = target.exchange(turn.line, len(turn.expect))
            if faults := list(_opening_faults(turn, actual)):
                failed = True
                sent = turn.line.decode("utf-8", "replace")
                differences = [*faults, *target.report()]
                yield Result(0, "The opening failed", actual, differences, answered=False, sent=sent)
                return
        for number in range(1, len(turns) + 1):
            yield conversation.turn(number)
    finally:
        late = target.close()
    if failed:
        return
    late = [*conversation.held, *conversation.compared(conversation.received(late))]
    late = [each for each in late if not conversation.may_lack(each)]
    if late:
        unexpected = [f"not expected: {match.short(each)}" for each in late]
        yield Result(len(turns) + 1, "After the end of input", late, unexpected)


class _Conversation:
    """The state of a replay: captured values, and messages that arrived before the turn that expects them."""

    def __init__(
        self,
        turns: Sequence[Turn],
        target: Target,
        record: bool,
        relaxed: bool,
        received: Callable[[Sequence[JsonValue]], Sequence[JsonValue]],
    ) -> None:
        self.turns, self.target, self.record, self.relaxed, self.received = turns, target, record, relaxed, received
        self.pending = _pending_requests(turns) if record else {}
        self.bindings: Bindings = {}
        self.held: list[JsonValue] = []
        self.unrecorded: list[str] = []  # of this turn; see `Result`
        self.versions: set[tuple[str, str]] = set()  # of the server, recorded and actual, that were reported
        self.silent = 0  # turns one after the other that had no message within the timeout
        self.unreachable = ""  # why no further turn is sent
        expected = [each for turn in turns for each in turn.expect]
        requests = [turn.request for turn in turns if turn.request is not None]
        self.open_requests = [each for each in requests if not any(answers(value, each) for value in expected)]

    def turn(self, number: int) -> Result:
        """Send one turn, and return its result."""
        turn, started = self.turns[number - 1], time.monotonic()
        if turn.skipped:
            return Result(number, turn.about, [], [], skipped=turn.skipped)
        if self.target.ended:
            return _unsent(number, turn, "not sent: the server had ended")
        if self.unreachable:
            return _unsent(number, turn, f"not sent: {self.unreachable}")
        try:
            line = turn.bound(self.bindings)
        except KeyError as error:
            return _unsent(number, turn, f"not sent: nothing was captured as {error.args[0]}")
        actual = self._exchange(number, turn, line)
        expected = _with_versions([*turn.expect], [*actual], self.versions) if self.relaxed else [*turn.expect]
        differences = list(match.differences(expected, [*actual], bindings=self.bindings))
        pending = self.pending.get(number)
        request = turn.request if any(answers(each, turn.request) for each in turn.expect) else pending
        answered = request is None or is_settled(actual, request)
        differences += self.target.report()
        sent, seconds = line.decode("utf-8", "replace"), time.monotonic() - started
        self._note_silence(turn, line, actual, seconds)
        unrecorded, self.unrecorded = self.unrecorded, []
        return Result(number, turn.about, actual, differences, answered, "", sent, turn.expect, seconds, unrecorded)

    def _exchange(self, number: int, turn: Turn, line: bytes) -> list[JsonValue]:
        """Return the messages of a turn, in the order in which they are expected."""
        pending, silence = self.pending.get(number), True
        if not self.record:
            pending, silence = self._end(turn)
        self.target.counts = lambda each: not self.may_lack(each) or self._matches(turn.expect, each)
        early = self._take_held(turn.expect)
        count = len(turn.expect) - len(early)
        actual = [*early, *self.received(self.target.exchange(line, count, pending, silence))]
        if self.relaxed:
            actual = self._hold_early(number, self.compared(actual))
        if self.relaxed or not self.target.ordered:
            actual = match.sort_like(turn.expect, actual, self.bindings)
        return actual

    def _note_silence(self, turn: Turn, line: bytes, actual: Sequence[JsonValue], seconds: float) -> None:
        """Note whether further turns would only cost the timeout: the handshake, or two turns, had no response."""
        if turn.request is None or actual or not (turn.expect or self.record):
            self.silent = 0 if actual else self.silent
            return
        self.silent += seconds >= self.target.timeout
        if _is_handshake(line):
            self.unreachable = "the server did not answer the handshake"
        elif self.silent >= _MAX_SILENT:
            self.unreachable = f"the server did not answer {_MAX_SILENT} requests"

    def _matches(self, expected: Sequence[JsonValue], message: JsonValue) -> bool:
        return bool(match.pairs(expected, self.received([message]), self.bindings))

    def _take_held(self, expected: Sequence[JsonValue]) -> list[JsonValue]:
        """Take the messages that arrived early and that match ``expected``."""
        found = match.pairs(expected, self.held, self.bindings).values()
        taken = [each for index, each in enumerate(self.held) if index in found]
        self.held = [each for index, each in enumerate(self.held) if index not in found]
        return taken

    def _hold_early(self, number: int, actual: list[JsonValue]) -> list[JsonValue]:
        """Return ``actual`` without the messages that only a later turn expects, which are held for it."""
        expected = self.turns[number - 1].expect
        found = set(match.pairs(expected, actual, self.bindings).values())
        rest = [index for index in range(len(actual)) if index not in found]
        later = [each for other in self.turns[number:] for each in other.expect] if rest else []
        early = match.pairs(later, [actual[index] for index in rest], self.bindings).values()
        held = {rest[index] for index in early}
        self.held += [actual[index] for index in sorted(held)]
        surplus = {index for index in rest if index not in held and self.may_lack(actual[index])}
        self.unrecorded += [_method(actual[index]) for index in sorted(surplus)]
        return [each for index, each in enumerate(actual) if index not in held | surplus]

    def _end(self, turn: Turn) -> tuple[str | int | None, bool]:
        """Return the request whose response ends a turn, if one does, and whether silence has to be observed."""
        if not turn.expect:
            return None, not self.relaxed
        asked = any(isinstance(each, dict) and {"id", "method"} <= each.keys() for each in turn.expect)
        if turn.request is not None and any(answers(each, turn.request) for each in turn.expect):
            last = self.relaxed or answers(turn.expect[-1], turn.request)
            ends = not asked and (last if self.target.ordered else self.relaxed)
            return turn.request if ends else None, False
        return None, not self.relaxed

    def may_lack(self, unexpected: JsonValue) -> bool:
        """Return whether a message is a notification that a recording may lack."""
        is_notification = isinstance(unexpected, dict) and "method" in unexpected and "id" not in unexpected
        return self.relaxed and not self.record and is_notification and self.target.is_general(unexpected)

    def compared(self, messages: Sequence[JsonValue]) -> list[JsonValue]:
        """Return the messages without the responses that a recording ended too early to contain."""
        if not self.relaxed or self.record:
            return [*messages]
        return [each for each in messages if not any(answers(each, request) for request in self.open_requests)]


def _with_versions(expected: Any, actual: Any, known: set[tuple[str, str]]) -> Any:
    """Return ``expected`` with the actual version of the server in place of a recorded one that was reported before.

    Some revisions repeat the version in each response, and a new version is one difference, not one for each turn.
    Versions that differ for the first time are added to ``known``.
    """
    if isinstance(expected, list) and isinstance(actual, list):
        pairs = zip(expected, actual, strict=False)
        return [*(_with_versions(*pair, known) for pair in pairs), *expected[len(actual) :]]
    if not isinstance(expected, dict) or not isinstance(actual, dict):
        return expected
    result = {key: _with_versions(inner, actual.get(key), known) for key, inner in expected.items()}
    for key, inner in result.items():
        server = actual.get(key)
        if not key.endswith(_IDENTITY) or not isinstance(inner, dict) or not isinstance(server, dict):
            continue
        versions = inner.get("version"), server.get("version")
        if versions in known:
            result[key] = {**inner, "version": versions[1]}
        elif versions[0] != versions[1] and all(isinstance(each, str) for each in versions):
            known.add((str(versions[0]), str(versions[1])))
    return result


def _is_handshake(line: bytes) -> bool:
    """Return whether ``line`` is the request of a handshake, or the discovery of a server."""
    try:
        return transcript.result_schema(_method(json.loads(line))) is not None
    except (ValueError, RecursionError):
        return False


def _method(value: JsonValue) -> str:
    """Return the method of a request or notification; empty for another message."""
    return str(value.get("method", "")) if isinstance(value, dict) else ""


def _unsent(number: int, turn: Turn, reason: str) -> Result:
    return Result(number, turn.about, [], [reason], answered=False, expected=turn.expect)


def _opening_faults(turn: Turn, actual: Sequence[JsonValue]) -> Iterator[str]:
    """Yield a sentence for each fault of the responses to a line of an opening. Other messages are ignored."""
    for each in actual:
        if not isinstance(each, dict) or each.get("jsonrpc") != "2.0":
            yield f"not a JSON-RPC message: {match.short(each)}"
    if turn.request is None:
        return
    method = json.loads(turn.line)["method"]
    responses: list[Any] = [each for each in actual if answers(each, turn.request)]
    if len(responses) != 1:
        yield f"{method}: expected one response, got {len(responses)}"
    for answer in responses:
        if "result" not in answer:
            yield f"{method}: expected a result, got {match.short(answer)}"
        elif (schema := transcript.result_schema(method)) is not None:
            for error in jsonschema.Draft202012Validator(schema).iter_errors(answer["result"]):
                yield f"{method}: {'.'.join(['result', *map(str, error.absolute_path)])}: {error.message}"


def _pending_requests(turns: Sequence[Turn]) -> dict[int, str | int]:
    """Map the number of a turn to the id of the request whose response it waits for when recording."""
    pending: dict[int, str | int] = {}
    outstanding: str | int | None = None
    for number, turn in enumerate(turns, 1):
        later = turns[number:]
        if turn.request is not None:
            outstanding = None if any(_settles(each, turn.request) for each in later) else turn.request
        if outstanding is not None and not turn.expect and (turn.request or turn.is_response):
            pending[number] = outstanding
    return pending


def _settles(turn: Turn, request: str | int) -> bool:
    """Return whether ``turn`` expects the response to ``request``, or refers to its id as a cancellation does."""
    return turn.refers_to == request or any(answers(each, request) for each in turn.expect)
