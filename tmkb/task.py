"""Calls that go on after they were answered: a client asks from time to time how far they are.

Extension io.modelcontextprotocol/tasks (SEP-2663). Tasks are few and are forgotten when they are old.
"""

from __future__ import annotations

import os
import time

from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.engine.effects import Invoke
    from tmkb.operation import Question
    from tmkb.spec.model import Limits
    from tmkb.values import JsonObject

    Questions = dict[str, Question]

WORKING, ASKING, COMPLETED, FAILED, CANCELLED = "working", "input_required", "completed", "failed", "cancelled"


class Task:
    """One such call: what it is doing, what it asks, and in the end its result or its error."""

    __slots__ = ("begun", "id", "invoke", "limits", "outcome", "questions", "status", "updated")

    def __init__(self, invoke: Invoke, limits: Limits) -> None:
        self.id = os.urandom(16).hex()  # nobody can guess another's
        self.invoke = invoke
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
        """It has come to an end, with what would have been the response to its request."""
        self.questions = {}
        kind = "result" if "result" in response else "error"
        self.outcome = {kind: response[kind]}
        self._become(COMPLETED if kind == "result" else FAILED)

    def cancel(self) -> None:
        """It was stopped."""
        self.questions = {}
        self._become(CANCELLED)

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

    def _become(self, status: str) -> None:
        self.status = status
        self.updated = time.time()


class Tasks:
    """The tasks of a server, by their ids."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.known: dict[str, Task] = {}

    def begin(self, invoke: Invoke) -> Task:
        """A new task. Raises ProtocolError where there are too many; the oldest that is over makes room."""
        self._forget_old()
        if len(self.known) >= self.limits["tasks"]:
            done = next((task for task in self.known.values() if task.over), None)
            if done is None:
                raise ProtocolError("too_many_tasks", limit=self.limits["tasks"])
            del self.known[done.id]
        task = Task(invoke, self.limits)
        self.known[task.id] = task
        return task

    def get(self, id_: str) -> Task:
        """The task of that id. Raises ProtocolError where there is none (any more)."""
        self._forget_old()
        if id_ not in self.known:
            raise ProtocolError("unknown_task", task=id_)
        return self.known[id_]

    def _forget_old(self) -> None:
        oldest = time.time() - self.limits["task_seconds"]
        for task in [task for task in self.known.values() if task.begun < oldest and task.over]:
            del self.known[task.id]


def _stamp(seconds: float) -> str:
    """A time as RFC 3339 has it, in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"
