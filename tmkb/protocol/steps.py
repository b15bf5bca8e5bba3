"""An operation that runs step by step: the effects of what it yields, and what it waits for.

Where a revision asks in results, an operation that asks has ended with its questions. When the client comes back, the
operation runs again from its start: effects from before the last answered question were sent in an earlier round, and
are not sent again. The runtime passes the time, in seconds of a monotonic clock.
"""

from __future__ import annotations

from tmkb.errors import ToolError
from tmkb.protocol import client_requests, outbound, requests
from tmkb.protocol.effects import Broadcast, ReleaseStream
from tmkb.protocol.requests import InputRequired
from tmkb.providers.operation import Ask, Detach, Hang, Log, Need, Notify, Pause, Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.protocol.effects import Effect
    from tmkb.protocol.requests import Exchange
    from tmkb.providers.operation import Question
    from tmkb.schema.values import JsonObject


class Steps:
    """When an operation is due, which answers it waits for, and what it is resumed with."""

    __slots__ = (
        "answers", "due", "error", "exchange", "input_required", "pending", "questions", "replayed", "timeout",
        "unused",
    )  # fmt: skip

    def __init__(self, exchange: Exchange, earlier: JsonObject) -> None:
        """Count the operation among those that run. Raises ProtocolError if there are too many.

        ``earlier``: the client's answers of earlier rounds.
        """
        if exchange.task is None:
            requests.hold(exchange)
        current: Any = (
            exchange.params.get("inputResponses", {}) if exchange.revision["client_requests"] == "in_result" else {}
        )
        self.exchange = exchange
        self.due = 0.0  # seconds
        self.questions: dict[str, Question] = {}  # without an answer, by their keys
        self.timeout: float = 0  # seconds that the client has to answer them
        self.answers: Any = None  # to the last questions
        self.error: ToolError | None = None  # to raise in the operation
        self.replayed: JsonObject = {**earlier, **current}  # answers for the questions of this round
        self.unused = set(self.replayed)
        self.pending: list[Effect] = []  # that may have been sent in an earlier round
        self.input_required: InputRequired | None = None  # the outcome of an operation that asks in its result

    def deliver(self, key: str, question: Question, answer: JsonObject | ToolError) -> bool:
        """Take the answer to ``question``, or the reason why there is none; return whether the operation can go on.

        An answer that comes when the operation no longer waits for it is ignored.
        """
        if self.questions.get(key) is not question:
            return False
        if isinstance(answer, ToolError):
            self._abort(answer)
        else:
            self.answers[key] = answer
            del self.questions[key]
            if not self.questions:
                self.exchange.lifecycle.move("resume")
        return not self.questions

    def on_timeout(self) -> list[Effect]:
        """Return the effects of questions that were not answered in time; none if no question is open."""
        if not self.questions:
            return []
        self._abort(ToolError("client_silent", seconds=self.timeout))
        if self.exchange.task is not None:
            self.exchange.task.withdraw()
        return client_requests.withdraw(self.exchange)

    def take_input(self) -> tuple[Any, ToolError | None]:
        """Return what the operation is resumed with: answers, or an error to raise in it."""
        answers, error = self.answers, self.error
        self.answers = self.error = None
        if error is not None:
            self.pending += client_requests.withdraw(self.exchange)
        return answers, error

    def on_yield(self, item: object, now: float) -> list[Effect] | None:
        """Return the effects of ``item``, which the operation yielded; None where it goes on at once."""
        self.due = now
        try:
            if isinstance(item, Ask):
                return self._ask(item)
            if isinstance(item, Detach):
                return self._detach()
            if isinstance(item, Need):
                client_requests.require_capability(self.exchange, item.capability)
                return None
        except ToolError as error:  # the client cannot be asked: the operation handles it
            self.error = error
            return None
        effects = self._effects(item)
        if self.unused:
            self.pending += effects
            return None
        return self.take_pending() + effects

    def take_pending(self) -> list[Effect]:
        """Return the effects that were held back, once."""
        pending, self.pending = self.pending, []
        return pending

    def _abort(self, error: ToolError) -> None:
        self.error, self.questions = error, {}
        self.exchange.lifecycle.move("resume")

    def _detach(self) -> list[Effect] | None:
        """Make a task of the call, if it can become one."""
        if self.exchange.detaches is None or self.exchange.task is not None:
            return None
        return self.take_pending() + requests.detach(self.exchange)

    def _effects(self, item: object) -> list[Effect]:
        if self.exchange.task is not None and isinstance(item, Progress | Log):
            return []  # its request is answered
        if isinstance(item, Progress):
            return outbound.send_progress(self.exchange, item)
        if isinstance(item, Log):
            return outbound.send_log(self.exchange, item)
        if isinstance(item, Notify):
            method: Any = self.exchange.revision["methods"].get(item.method, {})
            shared = "lists" in method or "subscribed" in method
            return [Broadcast(item)] if shared else outbound.broadcast(self.exchange.connection, item)
        if isinstance(item, Hang):
            return [ReleaseStream(self.exchange.connection, self.exchange.id)]
        assert isinstance(item, Pause)
        self.due += 0 if self.unused else item.seconds
        return []

    def _ask(self, item: Ask) -> list[Effect] | None:
        questions = client_requests.prepare(self.exchange, item)
        if not questions:  # pending effects stay so: no answer shows that they were sent in an earlier round
            self.answers = {}
            return None
        limits = self.exchange.spec["server"]["limits"]
        if self.exchange.task is not None:
            self._wait(questions, limits["task_seconds"])
            self.exchange.task.ask(questions)
            return self.take_pending()
        if self.exchange.revision["client_requests"] == "by_request":
            self._wait(questions, limits["answer_seconds"])
            effects = self.take_pending()
            for key, question in questions.items():
                effects += client_requests.send(self.exchange, key, question)
            return effects
        return self._ask_in_result(questions)

    def _wait(self, questions: dict[str, Question], seconds: float) -> None:
        self.exchange.lifecycle.move("ask")
        self.questions, self.answers, self.timeout = {**questions}, {}, seconds
        self.due += seconds

    def _ask_in_result(self, questions: dict[str, Question]) -> list[Effect] | None:
        """Go on with the answers of the client or, where some are missing, end with the questions."""
        self.unused -= set(questions)
        for key, question in questions.items():
            if key in self.replayed:
                client_requests.check_answer(self.exchange, question, self.replayed[key])
        if all(key in self.replayed for key in questions):
            self.pending, self.answers = [], {key: self.replayed[key] for key in questions}
            return None
        missing = {key: question for key, question in questions.items() if key not in self.replayed}
        answers = {key: answer for key, answer in self.replayed.items() if key not in self.unused}
        self.input_required = InputRequired(missing, answers)
        return self.take_pending()
