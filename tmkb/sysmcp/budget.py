"""The time limit of a call. Operations run in short steps, so that other messages are served in between."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import TypeVar

from tmkb.providers.operation import Pause
from tmkb.sysmcp.faults import TimeUp

Outcome = TypeVar("Outcome")
_STEP = 0.01  # seconds


class TimeBudget:
    """The deadline of a call, and the end of its current step."""

    def __init__(self, seconds: float) -> None:
        self.restart(seconds)
        self.begin_step()

    def restart(self, seconds: float) -> None:
        """Set the deadline to ``seconds`` from now."""
        self.deadline = time.monotonic() + seconds

    def begin_step(self) -> None:
        """Start a step; call it after each yield to the runtime."""
        self.step_end = time.monotonic() + _STEP

    def is_step_over(self) -> bool:
        """Return whether the operation should yield."""
        return time.monotonic() >= self.step_end

    def is_spent(self) -> bool:
        """Return whether the deadline has passed."""
        return time.monotonic() >= self.deadline


def limited(steps: Generator[Pause | None, None, Outcome], seconds: float) -> Generator[Pause, None, Outcome]:
    """Run ``steps`` and return their result. Raises TimeUp after ``seconds``."""
    budget = TimeBudget(seconds)
    try:
        while True:
            try:
                pause = next(steps)
            except StopIteration as end:
                outcome: Outcome = end.value
                return outcome
            if budget.is_spent():
                raise TimeUp
            yield pause or Pause(0)
    finally:
        steps.close()
