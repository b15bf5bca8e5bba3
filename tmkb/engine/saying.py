"""What an operation says and asks on its way, as messages; and what the client answers. Nothing is sent that it did not
want to hear: no progress without a token, no log below its level, no request that it has not declared.

Specification: Basic / Utilities / Progress; Server Features / Utilities / Logging; Client Features.
"""

from __future__ import annotations

from tmkb.engine import message, shape, validation
from tmkb.engine.effects import Resume, Send
from tmkb.errors import ProtocolError, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.engine.connection import Connection
    from tmkb.engine.effects import Effect, Invoke
    from tmkb.engine.message import Response
    from tmkb.operation import Ask, Log, Notify, Progress
    from tmkb.spec.model import Revision
    from tmkb.values import JsonObject


def start(connection: Connection, invoke: Invoke) -> None:
    """From now on ``invoke`` can be cancelled. Raises ProtocolError where too many run already."""
    limit = connection.spec["server"]["limits"]["running"]
    if len(connection.running) >= limit:
        raise ProtocolError("too_many_running", limit=limit)
    connection.running[invoke.request_id] = invoke


def progress(connection: Connection, invoke: Invoke, said: Progress) -> list[Effect]:
    """A notification to a client that gave a token; each has to say more than the last."""
    if invoke.progress_token is None or said.progress <= invoke.progress:
        return []
    invoke.progress = said.progress
    values = {"progress": said.progress, "total": said.total, "message": said.message}
    given: Any = {name: value for name, value in values.items() if value is not None}
    return _notification(
        connection, _role(invoke.revision, "progress"), {"progressToken": invoke.progress_token} | given
    )


def log(connection: Connection, invoke: Invoke, said: Log) -> list[Effect]:
    """A notification to a client that wants messages of this level."""
    levels, unset = invoke.revision["logging"]["levels"], invoke.revision["logging"]["unset"]
    if levels.index(said.level) < levels.index(connection.log_level or unset):
        return []
    params: JsonObject = {"level": said.level, "data": said.data}
    params |= {} if said.logger is None else {"logger": said.logger}
    return _notification(connection, _role(invoke.revision, "log"), params)


def notify(connection: Connection, said: Notify) -> list[Effect]:
    """A notification, to a client whose revision has it and, where it is about one thing, that has subscribed to it."""
    return _notification(connection, said.method, said.params)


def ask(connection: Connection, invoke: Invoke, said: Ask) -> list[Effect]:
    """A request to the client. Raises ToolError where it cannot be asked this."""
    method = invoke.revision["methods"].get(said.method)
    if method is None:
        raise ToolError("client_cannot_be_asked", method=said.method, revision=invoke.revision["revision"])
    params = said.params or {}
    for capability, wherefore in method.get("needs", {}).items():
        if _needed(params, wherefore) and not _declared(connection, invoke.revision, capability):
            raise ToolError("client_lacks_capability", capability=capability)
    if "sends" in method:
        params = shape.fit(invoke.revision, method["sends"], params)
    if validation.violations(method.get("params", {}), params, connection.spec["types"]):
        raise ToolError("client_cannot_be_asked", method=said.method, revision=invoke.revision["revision"])
    request_id, connection.next_id = connection.next_id, connection.next_id + 1
    connection.asked[request_id] = (invoke, method, params)
    return [Send(message.request(request_id, said.method, params if said.params is not None else None))]


def answered(connection: Connection, response: Response) -> list[Effect]:
    """What follows from the answer to a request of ours."""
    assert response.id is not None
    invoke, method, params = connection.asked.pop(response.id)
    if "error" in response.value:
        error: Any = response.value["error"]
        reason = error.get("message") if isinstance(error, dict) else None
        return [Resume(invoke, ToolError("client_refused", reason=reason if isinstance(reason, str) else ""))]
    result: Any = response.value["result"]
    found = validation.violations(
        {"type": "object", **method.get("result", {})}, result, connection.spec["types"], "result"
    )
    for key, rule in method.get("obeys", {}).items():
        if not found and rule["schema"] in params and rule["when"].items() <= result.items():
            schema: Any = {"required": [key], "properties": {key: params[rule["schema"]]}}
            found = validation.violations(schema, result, connection.spec["types"])
    if found:
        told = validation.sentences(found[:1], "params", {}, invoke.revision["errors"])
        return [Resume(invoke, ToolError("client_answer_invalid", violation=told[0]))]
    return [Resume(invoke, result)]


def forget(connection: Connection, invoke: Invoke) -> list[Effect]:
    """Nobody waits any more for what ``invoke`` has asked: tell the client not to bother."""
    waiting = [request_id for request_id, (asker, _, _) in connection.asked.items() if asker is invoke]
    effects: list[Effect] = []
    for request_id in waiting:
        del connection.asked[request_id]
        effects += _notification(connection, _role(invoke.revision, "cancelled"), {"requestId": request_id})
    return effects


def _notification(connection: Connection, name: str, params: JsonObject | None) -> list[Effect]:
    method = connection.revision["methods"].get(name)
    if method is None or ("capability" in method and not connection.declares(method["capability"])):
        return []
    if "subscribed" in method and (params is None or params.get(method["subscribed"]) not in connection.subscribed):
        return []
    if "sends" in method and params is not None:
        params = shape.fit(connection.revision, method["sends"], params)
    return [Send(message.notification(name, params))]


def _role(revision: Revision, role: str) -> str:
    """The method by which the engine says this."""
    return next(name for name, method in revision["methods"].items() if method.get("says") == role)


def _needed(params: JsonObject, wherefore: Any) -> bool:
    """Whether these params make a capability needed; see the meta-schema of revisions."""
    return not wherefore or any(
        (name in params) if values == "present" else (params.get(name) in values) for name, values in wherefore.items()
    )


def _declared(connection: Connection, revision: Revision, capability: str) -> bool:
    """Whether the client declares ``capability``, or the one inside that an empty one stands for."""
    declared: Any = connection.capabilities
    path = capability.split(".")
    for depth, part in enumerate(path):
        if not isinstance(declared, dict):
            return False
        stands_for = revision.get("client", {}).get(path[0], {}).get("when_empty")
        if depth == 1 and not declared and part == stands_for:
            return True
        if part not in declared or declared[part] is False:
            return False
        declared = declared[part]
    return True
