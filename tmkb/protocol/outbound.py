"""What an operation says and asks on its way, as messages; and what the client answers. Nothing is sent that it did not
want to hear: no progress without a token, no log below its level, no request that it has not declared.

Specification: Basic / Utilities / Progress; Server Features / Utilities / Logging; Client Features.
"""

from __future__ import annotations

from tmkb.errors import ProtocolError, ToolError
from tmkb.protocol import budget, messages, shape, validation
from tmkb.protocol.effects import Resume, Send
from tmkb.providers.operation import Question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect, Invoke
    from tmkb.protocol.messages import Id, Response
    from tmkb.protocol.validation import Violations
    from tmkb.providers.operation import Ask, Log, Notify, Progress
    from tmkb.schema.model import Revision
    from tmkb.schema.values import JsonObject, JsonValue


def start(connection: Connection, invoke: Invoke) -> None:
    """Count ``invoke`` among the running operations.

    Raises:
        ProtocolError: if too many run already, or their params take too much memory.
    """
    limit = connection.spec["server"]["limits"]["running"]
    if len(connection.running) >= limit:
        raise ProtocolError("too_many_running", limit=limit)
    size = budget.footprint([invoke.request_id, invoke.params])
    connection.budget.hold(size)
    invoke.held = size
    connection.running.add(invoke)


def progress(connection: Connection, invoke: Invoke, said: Progress) -> list[Effect]:
    """A notification to a client that gave a token; each has to say more than the last."""
    if invoke.progress_token is None or said.progress <= invoke.progress:
        return []
    invoke.progress = said.progress
    values = {"progress": said.progress, "total": said.total, "message": said.message}
    given: Any = {name: value for name, value in values.items() if value is not None}
    params: JsonObject = {"progressToken": invoke.progress_token} | given
    return _notification(connection, invoke.revision, _role(invoke.revision, "progress"), params, invoke.request_id)


def log(connection: Connection, invoke: Invoke, said: Log) -> list[Effect]:
    """A notification to a client that wants messages of this level."""
    levels = invoke.revision["logging"]["levels"]
    if invoke.log_level is None or levels.index(said.level) < levels.index(invoke.log_level):
        return []
    params: JsonObject = {"level": said.level, "data": said.data}
    params |= {} if said.logger is None else {"logger": said.logger}
    return _notification(connection, invoke.revision, _role(invoke.revision, "log"), params, invoke.request_id)


def notify(connection: Connection, said: Notify) -> list[Effect]:
    """A notification to whom it may concern: a client that has shaken hands, and every stream that listens for it."""
    effects: list[Effect] = []
    if connection.negotiated is not None:
        effects += _notification(connection, connection.negotiated, said.method, said.params)
    for listener, (revision, wanted) in connection.listening.items():
        method: Any = revision["methods"].get(said.method, {})
        heard = wanted.get(method.get("listened"))
        about = (said.params or {}).get(method.get("subscribed"))
        if heard is True or (isinstance(heard, list) and about in heard):
            whose: JsonObject = {"_meta": {revision["subscription"]: listener}}
            effects.append(Send(messages.notification(said.method, {**(said.params or {}), **whose}), listener))
    return effects


def need(invoke: Invoke, capability: str) -> None:
    """Raises ToolError where the client does not declare ``capability``."""
    if not _declared(invoke, capability):
        required: JsonObject = {}
        for part in reversed(capability.split(".")):
            required = {part: required}
        raise ToolError("client_lacks_capability", capability=capability, requiredCapabilities=required)


def askable(connection: Connection, invoke: Invoke, said: Ask) -> dict[str, Question]:
    """The questions that the client can be asked. Raises ToolError where it cannot be asked all that it has to be."""
    questions: dict[str, Question] = {}
    for key, question in said.questions.items():
        method = invoke.revision["methods"].get(question.method)
        if method is None:
            raise ToolError("client_cannot_be_asked", method=question.method, revision=invoke.revision["revision"])
        try:
            for capability, wherefore in method.get("needs", {}).items():
                if _needed(question.params or {}, wherefore):
                    need(invoke, capability)
        except ToolError:
            if said.declared_only:
                continue
            raise
        questions[key] = fitted = _fitted(invoke.revision, question)
        if validation.violations(method.get("params", {}), fitted.params or {}, connection.spec):
            raise ToolError("client_cannot_be_asked", method=question.method, revision=invoke.revision["revision"])
    return questions


def _fitted(revision: Revision, question: Question) -> Question:
    """The question as it is sent."""
    kind = revision["methods"][question.method].get("sends")
    if kind is None or question.params is None:
        return question
    return Question(question.method, shape.fit(revision, kind, question.params))


def ask(connection: Connection, invoke: Invoke, key: str, question: Question) -> list[Effect]:
    """A request to the client, whose answer belongs to ``key``."""
    request_id, connection.next_id = connection.next_id, connection.next_id + 1
    connection.asked[request_id] = (invoke, key, question)
    return [Send(messages.request(request_id, question.method, question.params), invoke.request_id)]


def answered(connection: Connection, response: Response) -> list[Effect]:
    """What follows from the answer to a request of ours."""
    assert response.id is not None
    invoke, key, question = connection.asked.pop(response.id)
    if "error" in response.value:
        error: Any = response.value["error"]
        reason = error.get("message") if isinstance(error, dict) else None
        refused = ToolError("client_refused", reason=reason if isinstance(reason, str) else "")
        return [Resume(invoke, key, question, refused)]
    result: Any = response.value["result"]
    if found := _violations(connection, invoke, question, result):
        told = validation.sentence(found, invoke.revision["errors"])
        return [Resume(invoke, key, question, ToolError("client_answer_invalid", violation=told))]
    return [Resume(invoke, key, question, result)]


def judge(connection: Connection, invoke: Invoke, question: Question, answer: JsonValue) -> None:
    """Raises ProtocolError where an answer that came with a request is none to ``question``."""
    if found := _violations(connection, invoke, question, answer):
        raise validation.refusal(found, invoke.revision["errors"])


def _violations(connection: Connection, invoke: Invoke, question: Question, result: Any) -> Violations:
    """What is wrong with an answer; nothing, if it obeys its method and, where the question has a schema, that."""
    method, params = invoke.revision["methods"][question.method], question.params or {}
    schema: Any = {"type": "object", **method.get("result", {})}
    found = validation.violations(schema, result, connection.spec, "result")
    for key, rule in method.get("obeys", {}).items():
        if not found and rule["schema"] in params and rule["when"].items() <= result.items():
            schema = {"required": [key], "properties": {key: params[rule["schema"]]}}
            found = validation.violations(schema, result, connection.spec)
    return found


def forget(connection: Connection, invoke: Invoke) -> list[Effect]:
    """Nobody waits any more for what ``invoke`` has asked: tell the client not to bother."""
    waiting = [request_id for request_id, (asker, _, _) in connection.asked.items() if asker is invoke]
    effects: list[Effect] = []
    for request_id in waiting:
        del connection.asked[request_id]
        cancelled = _role(invoke.revision, "cancelled")
        effects += _notification(connection, invoke.revision, cancelled, {"requestId": request_id}, invoke.request_id)
    return effects


def _notification(
    connection: Connection, revision: Revision, name: str, params: JsonObject | None, about: Id | None = None
) -> list[Effect]:
    method = revision["methods"].get(name)
    if method is None or ("capability" in method and not connection.promises(method["capability"])):
        return []
    if "subscribed" in method and (params is None or params.get(method["subscribed"]) not in connection.subscribed):
        return []
    if "sends" in method and params is not None:
        params = shape.fit(revision, method["sends"], params)
    return [Send(messages.notification(name, params), about)]


def _role(revision: Revision, role: str) -> str:
    """The method by which the engine says this."""
    return next(name for name, method in revision["methods"].items() if method.get("says") == role)


def _needed(params: JsonObject, wherefore: Any) -> bool:
    """Whether these params make a capability needed; see the meta-schema of revisions."""
    return not wherefore or any(
        (name in params) if values == "present" else (params.get(name) in values) for name, values in wherefore.items()
    )


def _declared(invoke: Invoke, capability: str) -> bool:
    """Whether the client declares ``capability``, or the one inside that an empty one stands for."""
    declared: Any = invoke.capabilities
    path = capability.split(".")
    for depth, part in enumerate(path):
        if not isinstance(declared, dict):
            return False
        stands_for = invoke.revision.get("client", {}).get(path[0], {}).get("when_empty")
        if depth == 1 and not declared and part == stands_for:
            return True
        if part not in declared or declared[part] is False:
            return False
        declared = declared[part]
    return True
