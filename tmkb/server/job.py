"""Run an operation that is a generator, one step at a time. `tmkb.protocol.steps` handles what it yields."""

from __future__ import annotations

from tmkb.protocol import client_requests
from tmkb.protocol.steps import Steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tmkb.protocol.effects import Effect
    from tmkb.protocol.requests import Exchange, Outcome
    from tmkb.providers.operation import StepGenerator
    from tmkb.schema.values import JsonObject


class Job:
    """A running generator, the state of its steps and, after its end, its outcome or exception."""

    def __init__(
        self, exchange: Exchange, generator: StepGenerator, earlier: JsonObject, clock: Callable[[], float]
    ) -> None:
        """Count the job as running.

        Args:
            exchange: the request.
            generator: what the operation returned.
            earlier: the client's answers of earlier rounds.
            clock: returns monotonic seconds.

        Raises:
            ProtocolError: if too many jobs are running.
        """
        self.steps = Steps(exchange, earlier)
        self.exchange = exchange
        self.generator = generator
        self.clock = clock
        self.ended = False
        self.outcome: Outcome = None
        self.error: Exception | None = None

    def step(self) -> list[Effect]:
        """Run the operation to its next yield with effects, or to its end. The end sets `outcome` or `error`."""
        effects = self.steps.on_timeout()
        try:
            while True:
                yielded = self.steps.on_yield(self._resume(), self.clock())
                if self.steps.input_required is not None:
                    self.generator.close()
                    self.ended, self.outcome = True, self.steps.input_required
                if yielded is not None:
                    return [*effects, *yielded]
        except StopIteration as end:
            self.outcome = end.value
        except Exception as error:
            self.error = error
        self.ended = True
        return [*effects, *self.steps.take_pending()]

    def stop(self) -> list[Effect]:
        """Close the generator and store its exception, if any, in `error`."""
        try:
            self.generator.close()
        except Exception as error:
            self.error = error
        self.ended = True
        return client_requests.withdraw(self.exchange)

    def _resume(self) -> object:
        answers, error = self.steps.take_input()
        return self.generator.send(answers) if error is None else self.generator.throw(error)
