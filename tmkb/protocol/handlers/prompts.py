"""prompts/list and prompts/get. Specification: Server Features / Prompts."""

from __future__ import annotations

from tmkb.errors import ProtocolError
from tmkb.protocol import validation
from tmkb.protocol.handlers import listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect, Invoke
    from tmkb.protocol.messages import Request
    from tmkb.protocol.refusal import Failure
    from tmkb.schema.model import Prompt, Revision
    from tmkb.schema.values import JsonObject


def list_prompts(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """The prompts, in the order of their names."""
    prompts = connection.spec["prompts"].values()
    return listing.answer(connection, revision, request, "prompts", "prompts_result", lambda: map(_listed, prompts))


def get_prompt(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """Hand the arguments to the prompt's operation. Raises ProtocolError where there is no such prompt or argument."""
    name, given = request.params["name"], request.params.get("arguments", {})
    assert isinstance(name, str) and isinstance(given, dict)  # the method's params schema has seen to it
    prompt = connection.spec["prompts"].get(name)
    if prompt is None:
        raise ProtocolError("unknown_prompt", prompt=name)
    found = validation.violations(_schema(prompt), given, connection.spec)
    if found:
        raise validation.refusal(found, revision["errors"])
    return connection.invoke(request, revision, prompt, given, (_finish, refuse))


def refuse(connection: Connection, invoke: Invoke, failures: list[Failure]) -> list[Effect]:
    """The response that the operation could not do its work; only a tool can say that in its result."""
    error = ProtocolError("operation_failed", sentence=" ".join(failure.sentence for failure in failures))
    return connection.refuse(invoke.request_id, error, invoke.revision)


def _listed(prompt: Prompt) -> dict[str, Any]:
    arguments = [{"name": name, **argument} for name, argument in prompt.get("arguments", {}).items()]
    return listing.identity(prompt) | ({"arguments": arguments} if arguments else {})


def _schema(prompt: Prompt) -> JsonObject:
    """JSON Schema of the arguments."""
    arguments = prompt.get("arguments", {})
    required: Any = [name for name, argument in arguments.items() if argument.get("required")]
    known: Any = {name: {} for name in arguments}
    return {"type": "object", "required": required, "properties": known, "additionalProperties": False}


def _finish(connection: Connection, invoke: Invoke, outcome: Any) -> list[Effect]:
    if isinstance(outcome, str):
        outcome = {"messages": [{"role": "user", "content": {"type": "text", "text": outcome}}]}
    described = {key: invoke.definition[key] for key in ("description",) if key in invoke.definition}
    noted = connection.note("prompted", invoke.request_id, prompt=invoke.definition["name"])
    return [noted, *connection.give(invoke.request_id, invoke.revision, "prompt_result", described | outcome)]
