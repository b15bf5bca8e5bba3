"""Tasks: requests whose operation continues after the response. Clients poll them. Old tasks are removed.

Extension io.modelcontextprotocol/tasks (SEP-2663).
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

# State of the request (`schemas/lifecycle/request.yaml`) → status of its task before it has a result or error
_STATUSES = {"received": "working", "detached": "working", "detached_waiting": "input_required"}


class Task:
    """A request whose response is a task: its open questions and, after its end, its result or error."""

    def __init__(  # all differ
        self, id_: str, principal: str, tool: str, exchange: Exchange | None, tasks: Tasks, budget: Budget
    ) -> None:
        """Reserve memory for the params in ``budget``, the principal's. Raises ProtocolError if they do not fit.

        ``tool``: the name of the tool that was called. ``exchange``: the request; None for a task that has ended in
        another process.
        """
        self.memory = 0 if exchange is None else footprint(exchange.params)
        budget.reserve(self.memory)
        self.id = id_
        self.principal = principal
        self.tool = tool
        self.budget = budget
        self.entry: Entry | None = None  # of the outcome, in the budget
        self.exchange: Any = exchange  # None after the end
        self.lifecycle = None if exchange is None else exchange.lifecycle
        self.limits = tasks.limits
        self.clock = tasks.clock
        self.created_at = self.updated_at = self.clock()
        self.began = tasks.timer()
        self.questions: Questions = {}
        self.outcome: JsonObject = {}

    @property
    def ended(self) -> bool:
        """Whether the operation has ended."""
        return self.exchange is None

    @property
    def status(self) -> str:
        """The status as defined by the extension."""
        if self.outcome:
            return "completed" if "result" in self.outcome else "failed"
        return _STATUSES.get(self.lifecycle.state if self.lifecycle is not None else "", "cancelled")

    def ask(self, questions: Questions) -> None:
        """Wait for the client's answers to ``questions``."""
        self.questions = {**questions}
        self.updated_at = self.clock()

    def remove(self, key: str) -> None:
        """Remove the answered question ``key``."""
        del self.questions[key]
        if not self.questions:
            self.updated_at = self.clock()

    def withdraw(self) -> None:
        """Remove all questions, because their time is over."""
        self.questions = {}
        self.updated_at = self.clock()

    def settle(self, response: Any) -> None:
        """End with ``response``, which the request would have had without a task."""
        kind = "result" if "result" in response else "error"
        self.outcome = {kind: response[kind]}
        self.end()

    def end(self) -> None:
        """End the task and release its memory."""
        self.questions = {}
        self.exchange = None
        self.updated_at = self.clock()
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
            "createdAt": _timestamp(self.created_at),
            "lastUpdatedAt": _timestamp(self.updated_at),
            "ttlMs": int(self.limits["task_seconds"] * 1000),
            "pollIntervalMs": self.limits["poll_milliseconds"],
            **({"inputRequests": requests} if requests else {}),
            **self.outcome,
        }


class Tasks:
    """The tasks of a server.

    ``clock`` returns Unix time in seconds, ``timer`` seconds that a change of the clock does not affect, ``new_id`` a
    random id.
    """

    def __init__(
        self, limits: Limits, clock: Callable[[], float], timer: Callable[[], float], new_id: Callable[[], str]
    ) -> None:
        self.limits = limits
        self.clock = clock
        self.timer = timer
        self.new_id = new_id
        self.by_id: dict[str, Task] = {}

    def begin(self, exchange: Exchange) -> Task:
        """Create a task for the request. At the limit, it replaces the oldest ended task of the same principal.

        Raises:
            ProtocolError: if there are too many tasks, or their params need too much memory.
        """
        self._remove_old()
        connection = exchange.connection
        own = [task for task in self.by_id.values() if task.principal == connection.principal]
        limit = self._reached_limit(len(own))
        if limit is not None:
            oldest = next((task for task in own if task.ended), None)
            if oldest is None:
                raise ProtocolError("too_many_tasks", limit=limit)
            self._remove(oldest)
        budget = connection.budget.parent
        assert budget is not None  # every request has a principal
        tool = str(exchange.definition["name"])
        task = Task(self.new_id(), connection.principal, tool, exchange, self, budget)
        self.by_id[task.id] = task
        return task

    def get(self, connection: Connection, id_: str) -> Task:
        """Return the task with that id.

        Raises:
            ProtocolError: if the connection's principal has no such task, or may not use its tool.
        """
        self._remove_old()
        task = self.by_id.get(id_)
        if task is None or task.principal != connection.principal or not connection.permits("tools", task.tool):
            raise ProtocolError("unknown_task", task=id_)
        return task

    def settle(self, task: Task, response: JsonObject) -> None:
        """End ``task`` with ``response``, which may be evicted when memory is needed."""
        task.settle(response)
        self._keep(task)

    def adopt(  # all differ
        self, id_: str, principal: str, tool: str, budget: Budget, created_at: float, outcome: JsonObject
    ) -> None:
        """Add a task that has ended in another process.

        Args:
            id_: its id.
            principal: its owner.
            tool: the name of its tool.
            budget: the budget of the owner.
            created_at: Unix time in seconds.
            outcome: its ``result`` or ``error``; empty if it was cancelled.
        """
        task = Task(id_, principal, tool, None, self, budget)
        task.created_at, task.outcome = created_at, outcome
        task.began = self.timer() - max(0.0, self.clock() - created_at)
        self.by_id[id_] = task
        self._keep(task)

    def drop(self, id_: str) -> None:
        """Remove a task that another process continues. Its operation, if it runs, has no effect any more."""
        if (task := self.by_id.get(id_)) is not None:
            self._remove(task)

    def _keep(self, task: Task) -> None:
        if self.by_id.get(task.id) is not task:  # dropped
            return
        task.entry = Entry(footprint(task.outcome), lambda: self._delete(task))
        task.budget.add(task.entry)

    def _reached_limit(self, own: int) -> int | None:
        """Return the limit that a principal with ``own`` tasks has reached, if any."""
        if own >= self.limits["principal_tasks"]:
            return self.limits["principal_tasks"]
        return self.limits["tasks"] if len(self.by_id) >= self.limits["tasks"] else None

    def _remove(self, task: Task) -> None:
        if task.entry is not None:
            task.budget.remove(task.entry)
        self._delete(task)

    def _delete(self, task: Task) -> None:
        task.entry = None
        del self.by_id[task.id]

    def _remove_old(self) -> None:
        oldest = self.timer() - self.limits["task_seconds"]
        for task in [task for task in self.by_id.values() if task.began < oldest and task.ended]:
            self._remove(task)


def _timestamp(seconds: float) -> str:
    """Format a Unix time by RFC 3339, in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"
