"""Check what the specification demands of every server, under each revision that the server speaks.

Starting a server can take seconds, so requirements share a connection, and those that may end it come last. Those that
fail are checked again on a new connection in the reverse order, and this second outcome counts: no requirement fails
for what another one has sent before it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tmkb.conformance.checks import Checks, Requirement, Undecidable
from tmkb.conformance.peers import HTTP, Reply
from tmkb.conformance.session import (
    ACCEPTED,
    FAIL,
    NOT_APPLICABLE,
    NOT_COVERED,
    PASS,
    SHOWN,
    Connect,
    Session,
    Stop,
    at,
)
from tmkb.conformance.targets import flat
from tmkb.schema.template import cut
from tmkb.schema.values import JsonObject, JsonValue

_BEGUN, _OPEN, _LAST, _OTHER, _ALONE = range(5)  # the order of requirements; see `_Run._rank`


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a server meets a requirement under one revision over one transport.

    Attributes:
        status: `PASS`, `FAIL`, `NOT_APPLICABLE`, `NOT_COVERED`, or `ACCEPTED` for a failure that the user knows.
        reasons: why; for a failure the differences, as sentences.
        sent: the message of the step that failed.
        received: what came back.
    """

    requirement: Requirement
    revision: str
    transport: str
    status: str
    reasons: list[str] = field(default_factory=list)
    sent: str = ""
    received: str = ""

    @property
    def keyword(self) -> str:
        """MUST, SHOULD or MAY."""
        return self.requirement.keyword(self.revision)


def accept(outcomes: Iterable[Outcome], ids: Collection[str]) -> list[Outcome]:
    """Return ``outcomes`` with the failures of the requirements ``ids`` as accepted."""
    return [
        dataclasses.replace(each, status=ACCEPTED) if each.status == FAIL and each.requirement.id in ids else each
        for each in outcomes
    ]


class Unreachable(Exception):
    """The server ends or is silent before it has answered anything.

    Attributes:
        fault: why the last response did not arrive.
        notes: the end of its stderr.
    """

    def __init__(self, fault: str, notes: str) -> None:
        super().__init__("The server answers no handshake.")
        self.fault, self.notes = fault, notes


@dataclass(frozen=True, slots=True)
class Spoken:
    """A revision that a server speaks over one transport.

    ``session``: the connection where it said so, after the first message. `check` goes on there, and closes it.
    """

    revision: str
    transport: str
    capabilities: JsonObject
    session: Session


def spoken(wanted: Checks, connect: Connect, revisions: Iterable[str]) -> Iterator[Spoken]:
    """Yield the revisions that a server speaks, each with a connection to go on with.

    Raises:
        Unreachable: it answers nothing.
        OSError: it cannot be started.
    """
    answered, notes, reply = False, "", Reply()
    for revision in revisions:
        session, speaks = Session(connect, wanted, revision, {}), False
        try:
            if session.peer.transport not in session.speech["transports"]:
                continue
            response, reply = session.begin()
            answered = answered or response is not None or bool(reply.messages)
            speaks = response is not None and not session.differs(session.speech["speaks"], response)
            if speaks:
                capabilities = at(response, session.speech["capabilities"])
                yield Spoken(revision, session.peer.transport, capabilities or {}, session)
        finally:
            if not speaks:
                notes = session.close() or notes
    if not answered:
        raise Unreachable(reply.fault, notes)


def check(
    wanted: Checks,
    connect: Connect,
    each: Spoken,
    variables: Mapping[str, JsonValue],
    is_loopback: bool = True,
    show: Callable[[str], None] = lambda _: None,
) -> list[Outcome]:
    """Check all requirements of one revision over one transport.

    Args:
        wanted: the requirements.
        connect: starts a new connection.
        each: the revision; its connection is closed at the end.
        variables: ``latest`` is the latest revision of the same era that the server speaks; ``tool`` and ``arguments``
            are a call that the user allows.
        is_loopback: whether the server is at a loopback address.
        show: called with a line about each requirement that is checked.
    """
    run = _Run(wanted, connect, each, variables, is_loopback)
    outcomes: dict[str, Outcome] = {}
    applicable = []
    for requirement in wanted.requirements:
        if (reason := run.exclusion(requirement)) is not None:
            outcomes[requirement.id] = run.outcome(requirement, *reason)
        else:
            applicable.append(requirement)
    attempted = [requirement for requirement in applicable if "steps" in requirement.value]
    for is_repeated in (False, True):
        for outcome in run.attempts(attempted, is_repeated):
            show(f"{each.revision} over {each.transport}: {outcome.requirement.id}")
            outcomes[outcome.requirement.id] = outcome
        attempted = [requirement for requirement in reversed(attempted) if outcomes[requirement.id].status == FAIL]
    for requirement in applicable:
        if "watch" in requirement.value:
            outcomes[requirement.id] = run.watch(requirement)
    return [outcomes[requirement.id] for requirement in wanted.requirements]


class _Run:
    """The checks of one revision over one transport."""

    def __init__(
        self,
        wanted: Checks,
        connect: Connect,
        each: Spoken,
        variables: Mapping[str, JsonValue],
        is_loopback: bool,
    ) -> None:
        self.wanted, self.connect, self.each, self.variables = wanted, connect, each, variables
        self.is_loopback = is_loopback
        self.shared: Session | None = each.session
        self.shared.variables |= variables
        self.lines: list[str] = []

    def exclusion(self, requirement: Requirement) -> tuple[str, str] | None:
        """Return the status and the reason of a requirement that is not checked."""
        value = requirement.value
        conditions = (
            (requirement.clause(self.each.revision) is None, NOT_APPLICABLE, "the revision does not demand it"),
            (
                self.each.transport not in value.get("transports", [self.each.transport]),
                NOT_APPLICABLE,
                "it is about another transport",
            ),
            (
                "needs" in value and not self._has(value["needs"]),
                NOT_APPLICABLE,
                f"the server does not declare the capability {value.get('needs')}",
            ),
            (
                "lacks" in value and self._has(value["lacks"]),
                NOT_APPLICABLE,
                f"the server declares the capability {value.get('lacks')}",
            ),
            ("option" in value and "tool" not in self.variables, NOT_COVERED, "it needs --call TOOL"),
            (
                "loopback" in value and not self.is_loopback,
                NOT_COVERED,
                "it needs a server at a loopback address",
            ),
        )
        return next(((status, reason) for holds, status, reason in conditions if holds), None)

    def attempts(self, requirements: Iterable[Requirement], is_repeated: bool) -> Iterator[Outcome]:
        """Carry out the steps of requirements; yield the outcomes. Of equal ones, the first one comes first."""
        for requirement in sorted(requirements, key=self._rank):
            is_alone = self._rank(requirement) == _ALONE or (is_repeated and "own" in requirement.value)
            first = requirement.value["steps"][0]["request"] if "opening" in requirement.value else None
            if is_alone or (self.shared is not None and not self.shared.fits(first)):
                self.drop()
            self.shared = session = self.shared or Session(
                self.connect, self.wanted, self.each.revision, self.variables
            )
            if first is None:
                session.open()
            outcome = self._attempt(requirement, session)
            # A connection that has begun with a failure is not opened.
            if is_alone or session.broken or (first is not None and outcome.status == FAIL):
                self.drop()
            yield outcome
        self.drop()

    def _rank(self, requirement: Requirement) -> int:
        """Return when a requirement is checked: before the end of the opening, after it, at the end, or alone."""
        value = requirement.value
        if self.each.transport == HTTP and ("own" in value or "opening" in value):
            return _ALONE
        if "opening" not in value:
            return _LAST if "own" in value else _OPEN
        opening = self.wanted.revisions[self.each.revision]["opening"][0]
        return _BEGUN if value["steps"][0]["request"] == opening["request"] else _OTHER

    def watch(self, requirement: Requirement) -> Outcome:
        """Compare all messages that have arrived with the shape of a requirement."""
        shape = requirement.value["watch"]
        for line in self.lines:
            try:
                message: Any = json.loads(line)
            except (ValueError, RecursionError):
                message = line
            for each in [message] if "type" in shape else flat([message]):
                if faults := self.wanted.differences(shape, each):
                    return self.outcome(requirement, FAIL, *faults, received=cut(line, SHOWN))
        return self.outcome(requirement, PASS)

    def drop(self) -> None:
        """Close the shared connection."""
        if self.shared is not None:
            self.shared.close()
            self.lines += self.shared.peer.lines
            self.shared = None

    def outcome(
        self, requirement: Requirement, status: str, *reasons: str, sent: str = "", received: str = ""
    ) -> Outcome:
        """Return an outcome under this revision and transport."""
        return Outcome(requirement, self.each.revision, self.each.transport, status, [*reasons], sent, received)

    def _attempt(self, requirement: Requirement, session: Session) -> Outcome:
        session.kept.clear()
        try:
            session.run(requirement.value["steps"])
        except Stop as stop:
            return self.outcome(requirement, stop.status, *stop.reasons, sent=stop.sent, received=stop.received)
        except Undecidable as error:
            return self.outcome(requirement, NOT_COVERED, str(error))
        return self.outcome(requirement, PASS)

    def _has(self, capability: str) -> bool:
        return at(self.each.capabilities, "/" + capability.replace(".", "/")) is not None
