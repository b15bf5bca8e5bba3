"""Tasks: requests that were answered before their operation ended. Clients poll them.

Extension io.modelcontextprotocol/tasks (SEP-2663). Tasks are few and are forgotten when they are old.
"""

from __future__ import annotations

import time

from tmkb.errors import ProtocolError
from tmkb.protocol.budget import Budget, Entry, footprint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tmkb.protocol.connection import Connection
    from tmkb.protocol.requests import Exchange
    from tmkb.providers.operation import Question
    from tmkb.schema.model import Limits
    from tmkb.schema.values import JsonObject

    Questions = dict[str, Question]

# State of the request (`schemas/lifecycle/request.yaml`) → status of its task, while it has no result or error.
_STATUSES = {"received": "working", "detached": "working", "detached_waiting": "input_required"}


class Task:
    """A request that was answered with a task: its open questions, and in the end its result or its error."""

    __slots__ = (
        "begun", "budget", "clock", "entry", "exchange", "id", "lifecycle", "limits", "memory", "outcome", "principal",
        "questions", "updated",
    )  # fmt: skip

    def __init__(
        self, id_: str, exchange: Exchange, limits: Limits, budget: Budget, clock: Callable[[], float]
    ) -> None:
        """Count the params against ``budget``, which is the principal's. Raises ProtocolError if they do not fit."""
        self.memory = footprint(exchange.params)
        budget.hold(self.memory)
        self.id = id_
        self.principal = exchange.connection.principal
        self.budget = budget
        self.entry: Entry | None = None  # of the budget, for the outcome
        self.exchange: Any = exchange  # None when it is over
        self.lifecycle = exchange.lifecycle
        self.limits = limits
        self.clock = clock
        self.begun = self.updated = clock()
        self.questions: Questions = {}
        self.outcome: JsonObject = {}

    @property
    def over(self) -> bool:
        """Whether the task has ended."""
        return self.exchange is None

    @property
    def status(self) -> str:
        """The status, as the extension names it."""
        if self.outcome:
            return "completed" if "result" in self.outcome else "failed"
        return _STATUSES.get(self.lifecycle.state, "cancelled")

    def ask(self, questions: Questions) -> None:
        """Wait for the client's answers to ``questions``."""
        self.questions = {**questions}
        self.updated = self.clock()

    def remove(self, key: str) -> None:
        """Remove the question ``key``, which is answered."""
        del self.questions[key]
        if not self.questions:
            self.updated = self.clock()

    def withdraw(self) -> None:
        """Drop the questions, because they were not answered in time: the operation goes on without answers."""
        self.questions = {}
        self.updated = self.clock()

    def settle(self, response: Any) -> None:
        """End with ``response``, the response that its request would have had."""
        kind = "result" if "result" in response else "error"
        self.outcome = {kind: response[kind]}
        self.end()

    def end(self) -> None:
        """Release what the task needs to run."""
        self.questions = {}
        self.exchange = None
        self.updated = self.clock()
        self.budget.release(self.memory)
        self.memory = 0

    def view(self) -> JsonObject:
        """Return the task as a client sees it."""
        requests: Any = {
            key: {"method": question.method, "params": question.params or {}}
            for key, question in self.questions.items()
        }
        return {
            "taskId": self.id,
            "status": self.status,
            "createdAt": _timestamp(self.begun),
            "lastUpdatedAt": _timestamp(self.updated),
            "ttlMs": int(self.limits["task_seconds"] * 1000),
            "pollIntervalMs": self.limits["poll_milliseconds"],
            **({"inputRequests": requests} if requests else {}),
            **self.outcome,
        }


class Tasks:
    """The tasks of a server, by their ids. ``clock`` returns Unix time; ``new_id`` an id that nobody can guess."""

    def __init__(self, limits: Limits, clock: Callable[[], float], new_id: Callable[[], str]) -> None:
        self.limits = limits
        self.clock = clock
        self.new_id = new_id
        self.known: dict[str, Task] = {}

    def begin(self, exchange: Exchange) -> Task:
        """Make a task of the request for its principal, whose oldest task that is over makes room.

        Raises:
            ProtocolError: if there are too many tasks, or their params take too much memory.
        """
        self._forget_old()
        connection = exchange.connection
        own = [task for task in self.known.values() if task.principal == connection.principal]
        limit = self._reached(len(own))
        if limit is not None:
            done = next((task for task in own if task.over), None)
            if done is None:
                raise ProtocolError("too_many_tasks", limit=limit)
            self._forget(done)
        budget = connection.budget.parent
        assert budget is not None  # a request is only ever handled for a principal
        task = Task(self.new_id(), exchange, self.limits, budget, self.clock)
        self.known[task.id] = task
        return task

    def get(self, connection: Connection, id_: str) -> Task:
        """Return the task of that id.

        Raises:
            ProtocolError: if the connection's principal has none, whether or not another principal has.
        """
        self._forget_old()
        task = self.known.get(id_)
        if task is None or task.principal != connection.principal:
            raise ProtocolError("unknown_task", task=id_)
        return task

    def settle(self, task: Task, response: JsonObject) -> None:
        """End ``task`` with the response that its request would have had; forget it when memory is needed."""
        task.settle(response)
        task.entry = Entry(footprint(response), lambda: self._drop(task))
        task.budget.keep(task.entry)

    def _reached(self, own: int) -> int | None:
        """Return the limit that a principal with ``own`` tasks has reached; None if there is room."""
        if own >= self.limits["principal_tasks"]:
            return self.limits["principal_tasks"]
        return self.limits["tasks"] if len(self.known) >= self.limits["tasks"] else None

    def _forget(self, task: Task) -> None:
        if task.entry is not None:
            task.budget.discard(task.entry)
        self._drop(task)

    def _drop(self, task: Task) -> None:
        task.entry = None
        del self.known[task.id]

    def _forget_old(self) -> None:
        oldest = self.clock() - self.limits["task_seconds"]
        for task in [task for task in self.known.values() if task.begun < oldest and task.over]:
            self._forget(task)


def _timestamp(seconds: float) -> str:
    """Format a Unix time by RFC 3339, in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"
