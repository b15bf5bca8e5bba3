"""One operation that runs step by step. What it says becomes effects; it waits for time to pass, or for answers.

Where a revision asks in results, an operation that asks has ended with its questions. When the client comes back it
runs again from its start: what it said before it was last answered has been said and is not said again.
"""

from __future__ import annotations

import time

from tmkb.errors import ToolError
from tmkb.protocol import inbound, outbound
from tmkb.protocol.effects import Announce, InputRequired, Release
from tmkb.providers.operation import Ask, Detach, Hang, Log, Need, Notify, Pause, Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect, Invoke, Outcome
    from tmkb.providers.operation import Question, Running
    from tmkb.schema.values import JsonObject


class Job:
    """A generator, when it is due again, which answers it waits for, and in the end its outcome."""

    __slots__ = (
        "answers",
        "connection",
        "due",
        "edition",
        "ended",
        "error",
        "failure",
        "generator",
        "given",
        "held",
        "invoke",
        "outcome",
        "patience",
        "unused",
        "waiting",
    )

    def __init__(self, connection: Connection, invoke: Invoke, generator: Running, earlier: JsonObject) -> None:
        """``earlier``: what the client answered in earlier rounds. Raises ProtocolError where too many run already."""
        if invoke.task is None:
            outbound.start(connection, invoke)
        given: Any = invoke.params.get("inputResponses", {}) if invoke.revision["asks"] == "in_result" else {}
        self.connection = connection
        self.edition = connection.edition  # that it began with
        self.invoke = invoke
        self.generator = generator
        self.due = 0.0
        self.waiting: dict[str, Question] = {}  # by their keys, the questions that have not been answered
        self.patience: float = 0  # seconds that the client has to answer them
        self.answers: Any = None  # to the questions that were asked last
        self.failure: ToolError | None = None
        self.given: JsonObject = {**earlier, **given}
        self.unused = set(self.given)
        self.held: list[Effect] = []  # what may have been said in an earlier round
        self.ended = False
        self.outcome: Outcome = None
        self.error: Exception | None = None  # that the operation ended with

    def take(self, key: str, question: Question, answer: JsonObject | ToolError) -> bool:
        """Take the answer to ``question``, or the reason why there is none; return whether the job can go on.

        An answer that comes when the job no longer waits for it is ignored.
        """
        if self.waiting.get(key) is not question:
            return False
        if isinstance(answer, ToolError):
            self.failure, self.waiting = answer, {}
        else:
            self.answers[key] = answer
            del self.waiting[key]
        return not self.waiting

    def step(self) -> list[Effect]:
        """Run the operation to its next yield, or to its end, which sets `outcome` or `error`."""
        effects = self._late() if self.waiting else []
        try:
            while True:
                said = self._resume()
                try:
                    done = self._said(said)
                except ToolError as error:  # the client cannot be asked: the operation's to deal with
                    self.failure = error
                    continue
                if done is not None:
                    return [*effects, *done]
        except StopIteration as end:
            self.outcome = end.value
        except Exception as error:
            self.error = error
        self.ended = True
        return [*effects, *self._released()]

    def stop(self) -> list[Effect]:
        """Close the operation; an exception that it raises then is in `error`."""
        try:
            self.generator.close()
        except Exception as error:
            self.error = error
        self.ended = True
        return outbound.forget(self.connection, self.invoke)

    def _resume(self) -> object:
        answers, failure = self.answers, self.failure
        self.answers = self.failure = None
        if failure is not None:
            withdrawn = outbound.forget(self.connection, self.invoke)
            self.held += withdrawn
            return self.generator.throw(failure)
        return self.generator.send(answers)

    def _late(self) -> list[Effect]:
        self.failure, self.waiting = ToolError("client_silent", seconds=self.patience), {}
        if self.invoke.task is not None:
            self.invoke.task.withdraw()
        return outbound.forget(self.connection, self.invoke)

    def _said(self, said: object) -> list[Effect] | None:
        """What follows; None where the operation goes on at once."""
        self.due = time.monotonic()
        if isinstance(said, Ask):
            return self._ask(said)
        if isinstance(said, Detach):
            return self._detach()
        if isinstance(said, Need):
            outbound.need(self.invoke, said.capability)
            return None
        effects = self._told(said)
        if self.unused:
            self.held += effects
            return None
        return self._released() + effects

    def _detach(self) -> list[Effect] | None:
        """From here on the call is a task, if it can be one."""
        if self.invoke.detaches is None or self.invoke.task is not None:
            return None
        return self._released() + inbound.detach(self.connection, self.invoke)

    def _told(self, said: object) -> list[Effect]:
        if self.invoke.task is not None and isinstance(said, Progress | Log):
            return []  # nobody listens any more
        if isinstance(said, Progress):
            return outbound.progress(self.connection, self.invoke, said)
        if isinstance(said, Log):
            return outbound.log(self.connection, self.invoke, said)
        if isinstance(said, Notify):
            method: Any = self.invoke.revision["methods"].get(said.method, {})
            shared = "lists" in method or "subscribed" in method
            return [Announce(said)] if shared else outbound.notify(self.connection, said)
        if isinstance(said, Hang):
            return [Release(self.invoke.request_id)]
        assert isinstance(said, Pause)
        self.due += 0 if self.unused else said.seconds
        return []

    def _released(self) -> list[Effect]:
        held, self.held = self.held, []
        return held

    def _ask(self, said: Ask) -> list[Effect] | None:
        questions = outbound.askable(self.connection, self.invoke, said)
        if not questions:  # what is held stays so: there is no answer that shows it was sent in an earlier round
            self.answers = {}
            return None
        limits = self.connection.spec["server"]["limits"]
        if self.invoke.task is not None:
            self._wait(questions, limits["task_seconds"])
            self.invoke.task.ask(questions)
            return self._released()
        if self.invoke.revision["asks"] == "by_request":
            self._wait(questions, limits["answer_seconds"])
            asked = self._released()
            for key, question in questions.items():
                asked += outbound.ask(self.connection, self.invoke, key, question)
            return asked
        self.unused -= set(questions)
        for key in questions:
            if key in self.given:
                outbound.judge(self.connection, self.invoke, questions[key], self.given[key])
        if all(key in self.given for key in questions):
            self.held, self.answers = [], {key: self.given[key] for key in questions}
            return None
        return self._end_with(questions)

    def _wait(self, questions: dict[str, Question], seconds: float) -> None:
        self.waiting, self.answers, self.patience = {**questions}, {}, seconds
        self.due += seconds

    def _end_with(self, questions: dict[str, Question]) -> list[Effect]:
        """The client is asked in the result, and comes back."""
        self.generator.close()
        missing = {key: question for key, question in questions.items() if key not in self.given}
        answers = {key: answer for key, answer in self.given.items() if key not in self.unused}
        self.ended, self.outcome = True, InputRequired(missing, answers)
        return self._released()
