"""One operation that runs step by step. What it says becomes effects; it waits for time to pass, or for an answer."""

from __future__ import annotations

import time

from tmkb.engine import saying
from tmkb.errors import ToolError
from tmkb.operation import Ask, Log, Notify, Pause, Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.engine.connection import Connection
    from tmkb.engine.effects import Effect, Invoke, Outcome
    from tmkb.operation import Running
    from tmkb.values import JsonObject


class Job:
    """A generator, when it is due again, whether it waits for an answer, and in the end its outcome."""

    __slots__ = ("answer", "asking", "connection", "due", "ended", "generator", "invoke", "outcome")

    def __init__(self, connection: Connection, invoke: Invoke, generator: Running) -> None:
        """Raises ProtocolError where too many run already."""
        saying.start(connection, invoke)
        self.connection = connection
        self.invoke = invoke
        self.generator = generator
        self.due = 0.0
        self.asking = False
        self.answer: JsonObject | ToolError | None = None
        self.ended = False
        self.outcome: Outcome = None

    def step(self) -> list[Effect]:
        """Run to the next thing it says. Raises what the operation raises."""
        late: list[Effect] = []
        if self.asking and self.answer is None:
            late = saying.forget(self.connection, self.invoke)
            seconds = self.connection.spec["server"]["limits"]["answer_seconds"]
            self.answer = ToolError("client_silent", seconds=seconds)
        answer, self.answer, self.asking = self.answer, None, False
        try:
            while True:
                try:
                    said = (
                        self.generator.throw(answer) if isinstance(answer, ToolError) else self.generator.send(answer)
                    )
                    return [*late, *self._effects(said)]
                except _Unanswerable as error:
                    answer = error.reason
        except StopIteration as end:
            self.ended, self.outcome = True, end.value
            return late

    def stop(self) -> list[Effect]:
        """Do not go on. Raises what the operation raises when it is closed."""
        try:
            self.generator.close()
        finally:
            effects = saying.forget(self.connection, self.invoke)
        return effects

    def _effects(self, said: object) -> list[Effect]:
        self.due = time.monotonic()
        if isinstance(said, Progress):
            return saying.progress(self.connection, self.invoke, said)
        if isinstance(said, Log):
            return saying.log(self.connection, self.invoke, said)
        if isinstance(said, Notify):
            return saying.notify(self.connection, said)
        if isinstance(said, Ask):
            return self._ask(said)
        assert isinstance(said, Pause)
        self.due += said.seconds
        return []

    def _ask(self, said: Ask) -> list[Effect]:
        try:
            effects = saying.ask(self.connection, self.invoke, said)
        except ToolError as error:
            raise _Unanswerable(error) from error
        self.asking = True
        self.due += self.connection.spec["server"]["limits"]["answer_seconds"]
        return effects


class _Unanswerable(Exception):
    """The client cannot be asked this."""

    def __init__(self, reason: ToolError) -> None:
        self.reason = reason
