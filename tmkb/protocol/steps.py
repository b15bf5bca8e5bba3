"""Turn the steps that an operation yields into effects, and track what the operation waits for.

In revisions with ``client_requests: in_result``, questions end the operation. When the client sends its answers, the
operation runs again from its start. Effects from before the last answered question were sent in an earlier round, and
are not sent again. The runtime passes the time, in seconds of a monotonic clock.
"""

from __future__ import annotations

from tmkb.errors import ToolError
from tmkb.protocol import client_requests, outbound, requests
from tmkb.protocol.effects import Broadcast, ReleaseStream
from tmkb.protocol.requests import InputRequired
from tmkb.providers import operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.protocol.effects import Effect
    from tmkb.protocol.requests import Exchange
    from tmkb.providers.operation import Question
    from tmkb.schema.values import JsonObject


class Steps:
    """The time at which an operation continues, the answers that it waits for, and the value that resumes it."""

    def __init__(self, exchange: Exchange, earlier: JsonObject) -> None:
        """Count the operation as running.

        Args:
            exchange: the request.
            earlier: the client's answers of earlier rounds.

        Raises:
            ProtocolError: if too many operations are running.
        """
        if exchange.task is None:
            requests.start_running(exchange)
        current: Any = (
            exchange.params.get("inputResponses", {}) if exchange.revision["client_requests"] == "in_result" else {}
        )
        self.exchange = exchange
        self.resume_at = 0.0  # monotonic time in seconds
        self.questions: dict[str, Question] = {}  # open questions by key
        self.timeout: float = 0  # seconds to answer them
        self.answers: Any = None  # to the last questions
        self.error: ToolError | None = None  # to raise in the operation
        self.replayed: JsonObject = {**earlier, **current}  # answers for the questions of this round
        self.unused = set(self.replayed)
        self.pending: list[Effect] = []  # possibly sent in an earlier round
        self.input_required: InputRequired | None = None  # the outcome, if questions end the operation

    def deliver(self, key: str, question: Question, answer: JsonObject | ToolError) -> bool:
        """Store the answer to ``question``, or the error that replaces it; return whether the operation can continue.

        An answer that the operation no longer waits for is ignored.
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
        """Abort the open questions, if any, and return the notifications that cancel them."""
        if not self.questions:
            return []
        self._abort(ToolError("client_silent", seconds=self.timeout))
        if self.exchange.task is not None:
            self.exchange.task.withdraw()
        return client_requests.withdraw(self.exchange)

    def take_input(self) -> tuple[Any, ToolError | None]:
        """Return the answers that the yield returns, or the error that it raises."""
        answers, error = self.answers, self.error
        self.answers = self.error = None
        if error is not None:
            self.pending += client_requests.withdraw(self.exchange)
        return answers, error

    def on_yield(self, step: object, now: float) -> list[Effect] | None:
        """Return the effects of ``step``, which the operation yielded; None if it continues at once."""
        self.resume_at = now
        try:
            if isinstance(step, operation.Ask):
                return self._ask(step)
            if isinstance(step, operation.Detach):
                return self._detach()
            if isinstance(step, operation.RequireCapability):
                client_requests.require_capability(self.exchange, step.capability)
                return None
        except ToolError as error:  # raised in the operation, which may handle it
            self.error = error
            return None
        effects = self._effects(step)
        if self.unused:
            self.pending += effects
            return None
        return self.take_pending() + effects

    def take_pending(self) -> list[Effect]:
        """Return the pending effects and forget them."""
        pending, self.pending = self.pending, []
        return pending

    def _abort(self, error: ToolError) -> None:
        self.error, self.questions = error, {}
        self.exchange.lifecycle.move("resume")

    def _detach(self) -> list[Effect] | None:
        """Convert the request to a task, if its tool allows that."""
        if self.exchange.detaches is None or self.exchange.task is not None:
            return None
        return self.take_pending() + requests.detach(self.exchange)

    def _effects(self, step: object) -> list[Effect]:
        if self.exchange.task is not None and isinstance(step, operation.Progress | operation.Log):
            return []  # the request already has its response
        if isinstance(step, operation.Progress):
            return outbound.send_progress(self.exchange, step)
        if isinstance(step, operation.Log):
            return outbound.send_log(self.exchange, step)
        if isinstance(step, operation.Notify):
            method: Any = self.exchange.revision["methods"].get(step.method, {})
            shared = "lists" in method or "subscribed" in method
            return [Broadcast(step)] if shared else outbound.broadcast(self.exchange.connection, step)
        if isinstance(step, operation.ReleaseStream):
            return [ReleaseStream(self.exchange.connection, self.exchange.id)]
        assert isinstance(step, operation.Pause)
        self.resume_at += 0 if self.unused else step.seconds
        return []

    def _ask(self, step: operation.Ask) -> list[Effect] | None:
        questions = client_requests.shape_questions(self.exchange, step)
        if not questions:  # keep pending effects: no answer shows that an earlier round sent them
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
        self.resume_at += seconds

    def _ask_in_result(self, questions: dict[str, Question]) -> list[Effect] | None:
        """Continue with the client's answers; if some are missing, end the operation with the open questions."""
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
