"""Calls that go on after they were answered: a client asks from time to time how far they are.

Extension io.modelcontextprotocol/tasks (SEP-2663). Tasks are few and are forgotten when they are old.
"""

from __future__ import annotations

import os
import time

from tmkb.errors import ProtocolError
from tmkb.protocol.budget import Budget, Entry, footprint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Invoke
    from tmkb.providers.operation import Question
    from tmkb.schema.model import Limits
    from tmkb.schema.values import JsonObject

    Questions = dict[str, Question]

WORKING, ASKING, COMPLETED, FAILED, CANCELLED = "working", "input_required", "completed", "failed", "cancelled"


class Task:
    """One such call: what it is doing, what it asks, and in the end its result or its error."""

    __slots__ = (
        "begun", "budget", "entry", "held", "id", "invoke", "limits", "outcome", "principal", "questions", "status",
        "updated",
    )  # fmt: skip

    def __init__(self, invoke: Invoke, limits: Limits, principal: str, budget: Budget) -> None:
        """Count the params against ``budget``, which is the principal's. Raises ProtocolError if they do not fit."""
        self.held = footprint(invoke.params)
        budget.hold(self.held)
        self.id = os.urandom(16).hex()  # nobody can guess another's
        self.principal = principal
        self.budget = budget
        self.entry: Entry | None = None  # of the budget, for the outcome
        self.invoke: Any = invoke  # None when it is over
        self.limits = limits
        self.status = WORKING
        self.begun = self.updated = time.time()
        self.questions: Questions = {}
        self.outcome: JsonObject = {}

    @property
    def over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.status in (COMPLETED, FAILED, CANCELLED)

    def ask(self, questions: Questions) -> None:
        """It goes on when the client has answered these."""
        self.questions = {**questions}
        self._become(ASKING)

    def answered(self, key: str) -> None:
        """One of its questions has been."""
        del self.questions[key]
        if not self.questions:
            self._become(WORKING)

    def withdraw(self) -> None:
        """Drop the questions, because they were not answered in time: the operation goes on without answers."""
        self.questions = {}
        self._become(WORKING)

    def settle(self, response: Any) -> None:
        """Take what would have been the response to its request as its outcome."""
        self.questions = {}
        kind = "result" if "result" in response else "error"
        self.outcome = {kind: response[kind]}
        self._end(COMPLETED if kind == "result" else FAILED)

    def cancel(self) -> None:
        """It was stopped."""
        self._end(CANCELLED)

    def view(self) -> JsonObject:
        """What a client is told of it."""
        asked: Any = {
            key: {"method": question.method, "params": question.params or {}}
            for key, question in self.questions.items()
        }
        return {
            "taskId": self.id,
            "status": self.status,
            "createdAt": _stamp(self.begun),
            "lastUpdatedAt": _stamp(self.updated),
            "ttlMs": int(self.limits["task_seconds"] * 1000),
            "pollIntervalMs": self.limits["poll_milliseconds"],
            **({"inputRequests": asked} if asked else {}),
            **self.outcome,
        }

    def _end(self, status: str) -> None:
        self._become(status)
        self.questions = {}
        self.invoke = None
        self.budget.release(self.held)
        self.held = 0

    def _become(self, status: str) -> None:
        self.status = status
        self.updated = time.time()


class Tasks:
    """The tasks of a server, by their ids."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.known: dict[str, Task] = {}

    def begin(self, connection: Connection, invoke: Invoke) -> Task:
        """Make a task of the connection's principal, whose oldest task that is over makes room.

        Raises:
            ProtocolError: if there are too many tasks, or their params take too much memory.
        """
        self._forget_old()
        own = [task for task in self.known.values() if task.principal == connection.principal]
        limit = self._reached(len(own))
        if limit is not None:
            done = next((task for task in own if task.over), None)
            if done is None:
                raise ProtocolError("too_many_tasks", limit=limit)
            self._forget(done)
        budget = connection.budget.parent
        assert budget is not None  # a request is only ever handled for a principal
        task = Task(invoke, self.limits, connection.principal, budget)
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
        """End ``task`` with what would have been the response; forget it when the principal needs the memory."""
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
        oldest = time.time() - self.limits["task_seconds"]
        for task in [task for task in self.known.values() if task.begun < oldest and task.over]:
            self._forget(task)


def _stamp(seconds: float) -> str:
    """A time as RFC 3339 has it, in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"
