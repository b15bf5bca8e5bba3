"""Send questions of operations to the client and validate its answers. Only declared capabilities are used.

Specification: Client Features; 2026-07-28, Basic / Patterns / Multi Round-Trip Requests.
"""

from __future__ import annotations

from tmkb.errors import ToolError
from tmkb.protocol import arguments, messages, outbound
from tmkb.protocol.effects import Resume, Send
from tmkb.providers.operation import Question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.protocol.arguments import Violations
    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect
    from tmkb.protocol.messages import Response
    from tmkb.protocol.requests import Exchange
    from tmkb.providers.operation import Ask
    from tmkb.schema.model import Revision
    from tmkb.schema.values import JsonObject, JsonValue


def require_capability(exchange: Exchange, capability: str) -> None:
    """Raise ToolError if the client does not declare ``capability``."""
    if not _declared(exchange, capability):
        required: JsonObject = {}
        for part in reversed(capability.split(".")):
            required = {part: required}
        raise ToolError("client_lacks_capability", capability=capability, requiredCapabilities=required)


def shape_questions(exchange: Exchange, step: Ask) -> dict[str, Question]:
    """Return the questions by key, in the shape of the revision.

    Raises:
        ToolError: if the revision or the client does not support one of them.
    """
    revision, questions = exchange.revision, {}
    for key, question in step.questions.items():
        method = revision["methods"].get(question.method)
        if method is None:
            raise ToolError("client_cannot_be_asked", method=question.method, revision=revision["revision"])
        try:
            for capability, conditions in method.get("needs", {}).items():
                if _needed(question.params or {}, conditions):
                    require_capability(exchange, capability)
        except ToolError:
            if step.declared_only:
                continue
            raise
        questions[key] = fitted = _fit(revision, question)
        if arguments.violations(method.get("params", {}), fitted.params or {}, exchange.spec):
            raise ToolError("client_cannot_be_asked", method=question.method, revision=revision["revision"])
    return questions


def send(exchange: Exchange, key: str, question: Question) -> list[Effect]:
    """Return the request that asks the client ``question``. Its response answers ``key``."""
    connection = exchange.connection
    request_id, connection.next_id = connection.next_id, connection.next_id + 1
    connection.client_requests[request_id] = (exchange, key, question)
    return [Send(connection, messages.request(request_id, question.method, question.params), exchange.id)]


def receive(connection: Connection, response: Response) -> list[Effect]:
    """Return the effect that delivers the client's response to the waiting operation."""
    assert response.id is not None
    exchange, key, question = connection.client_requests.pop(response.id)
    if "error" in response.value:
        error: Any = response.value["error"]
        reason = error.get("message") if isinstance(error, dict) else None
        refused = ToolError("client_refused", reason=reason if isinstance(reason, str) else "")
        return [Resume(exchange, key, question, refused)]
    result: Any = response.value["result"]
    if invalid := _violations(exchange, question, result):
        sentence = arguments.sentence(invalid, exchange.revision["errors"])
        return [Resume(exchange, key, question, ToolError("client_answer_invalid", violation=sentence))]
    return [Resume(exchange, key, question, result)]


def check_answer(exchange: Exchange, question: Question, answer: JsonValue) -> None:
    """Validate an answer that arrived in a request. Raises ProtocolError."""
    if invalid := _violations(exchange, question, answer):
        raise arguments.error_for(invalid, exchange.revision["errors"])


def withdraw(exchange: Exchange) -> list[Effect]:
    """Remove the open client requests of ``exchange`` and return the notifications that cancel them."""
    requests = exchange.connection.client_requests
    effects: list[Effect] = []
    for request_id in [id_ for id_, (owner, _, _) in requests.items() if owner is exchange]:
        del requests[request_id]
        effects += outbound.notify_client(exchange, "cancelled", {"requestId": request_id})
    return effects


def _fit(revision: Revision, question: Question) -> Question:
    kind = revision["methods"][question.method].get("params_shape")
    if kind is None or question.params is None:
        return question
    return Question(question.method, outbound.fit(revision, kind, question.params))


def _violations(exchange: Exchange, question: Question, result: Any) -> Violations:
    """Validate an answer against the schema of its method, then against the question's own schema, if any."""
    method, params = exchange.revision["methods"][question.method], question.params or {}
    schema: Any = {"type": "object", **method.get("result", {})}
    invalid = arguments.violations(schema, result, exchange.spec, "result")
    for key, rule in method.get("obeys", {}).items():
        if not invalid and rule["schema"] in params and rule["when"].items() <= result.items():
            schema = {"required": [key], "properties": {key: params[rule["schema"]]}}
            invalid = arguments.violations(schema, result, exchange.spec)
    return invalid


def _needed(params: JsonObject, conditions: Any) -> bool:
    """Return whether these params need the capability; see `needs` in the meta-schema of revisions."""
    return not conditions or any(
        (name in params) if values == "present" else (params.get(name) in values) for name, values in conditions.items()
    )


def _declared(exchange: Exchange, capability: str) -> bool:
    """Return whether the client declares ``capability``, or an empty parent that implies it."""
    declared: Any = exchange.capabilities
    path = capability.split(".")
    for depth, part in enumerate(path):
        if not isinstance(declared, dict):
            return False
        implied = exchange.revision.get("client", {}).get(path[0], {}).get("when_empty")
        if depth == 1 and not declared and part == implied:
            return True
        if part not in declared or declared[part] is False:
            return False
        declared = declared[part]
    return True
