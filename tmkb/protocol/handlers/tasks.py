"""tasks/get, tasks/update and tasks/cancel. Extension io.modelcontextprotocol/tasks (SEP-2663)."""

from __future__ import annotations

from tmkb.protocol import outbound
from tmkb.protocol.effects import Cancel, Resume

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect
    from tmkb.protocol.messages import Request
    from tmkb.schema.model import Revision


def get_task(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """How far it is."""
    task = connection.tasks.get(connection, str(request.params["taskId"]))
    return connection.give(request.id, revision, "task", task.view())


def update_task(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """Answers to what it asks; others are ignored. Raises ProtocolError where one is none."""
    task = connection.tasks.get(connection, str(request.params["taskId"]))
    given: Any = request.params["inputResponses"]
    answers = {key: given[key] for key in task.questions if key in given}
    for key, answer in answers.items():
        outbound.judge(connection, task.invoke, task.questions[key], answer)
    resumed: list[Effect] = []
    for key, answer in answers.items():
        resumed.append(Resume(task.invoke, key, task.questions[key], answer))
        task.answered(key)
    return [*connection.give(request.id, revision, "task_noted", {}), *resumed]


def cancel_task(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """Stop it, unless it is over."""
    task = connection.tasks.get(connection, str(request.params["taskId"]))
    stopped: list[Effect] = [] if task.over else [Cancel(task.invoke)]
    return [*stopped, *connection.give(request.id, revision, "task_noted", {})]
