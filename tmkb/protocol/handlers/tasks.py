"""tasks/get, tasks/update and tasks/cancel. Extension io.modelcontextprotocol/tasks (SEP-2663)."""

from __future__ import annotations

from tmkb.protocol import client_requests, outbound
from tmkb.protocol.effects import Cancel, Resume

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.protocol.effects import Effect
    from tmkb.protocol.requests import Exchange
    from tmkb.protocol.tasks import Task


class _GetTask:
    """Return the status of a task."""

    def begin(self, exchange: Exchange) -> list[Effect]:
        return outbound.send_result(exchange, "task", _task(exchange).view())


class _UpdateTask:
    """Deliver the client's answers to a task. Answers without a question are ignored, invalid ones refused."""

    def begin(self, exchange: Exchange) -> list[Effect]:
        task = _task(exchange)
        responses: Any = exchange.params["inputResponses"]
        answers = {key: responses[key] for key in task.questions if key in responses}
        for key, answer in answers.items():
            client_requests.check_answer(task.exchange, task.questions[key], answer)
        resumed: list[Effect] = []
        for key, answer in answers.items():
            resumed.append(Resume(task.exchange, key, task.questions[key], answer))
            task.remove(key)
        return [*outbound.send_result(exchange, "task_noted", {}), *resumed]


class _CancelTask:
    """Cancel a task, unless it has ended."""

    def begin(self, exchange: Exchange) -> list[Effect]:
        task = _task(exchange)
        stopped: list[Effect] = [] if task.ended else [Cancel(task.exchange)]
        return [*stopped, *outbound.send_result(exchange, "task_noted", {})]


get_task, update_task, cancel_task = _GetTask(), _UpdateTask(), _CancelTask()


def _task(exchange: Exchange) -> Task:
    assert exchange.connection.tasks is not None  # set if the server declares the extension
    return exchange.connection.tasks.get(exchange.connection, str(exchange.params["taskId"]))
