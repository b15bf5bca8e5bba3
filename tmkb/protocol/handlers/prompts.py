"""prompts/list and prompts/get. Specification: Server Features / Prompts."""

from __future__ import annotations

from tmkb.errors import ProtocolError
from tmkb.protocol import arguments, outbound
from tmkb.protocol.handlers import listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.protocol.effects import Effect
    from tmkb.protocol.outbound import Failure
    from tmkb.protocol.requests import Exchange
    from tmkb.schema.model import Prompt
    from tmkb.schema.values import JsonObject


class _ListPrompts:
    """List the prompts, in the order of their names."""

    def begin(self, exchange: Exchange) -> list[Effect]:
        prompts = listing.permitted(exchange, "prompts")
        return listing.send_page(exchange, "prompts", "prompts_result", lambda: map(_entry, prompts))


class Operations:
    """The base class of handlers for prompts, resources and completion: a failed operation is a protocol error."""

    def refuse(self, exchange: Exchange, failures: list[Failure]) -> list[Effect]:
        """Return the error response for a failed operation."""
        error = ProtocolError("operation_failed", sentence=" ".join(failure.sentence for failure in failures))
        return outbound.refuse(exchange, error)


class _GetPrompt(Operations):
    """Run the operation of a prompt. Raises ProtocolError if there is no such prompt or argument."""

    def begin(self, exchange: Exchange) -> list[Effect]:
        name, values = exchange.params["name"], exchange.params.get("arguments", {})
        assert isinstance(name, str) and isinstance(values, dict)  # valid by the schema of the method
        prompt = exchange.spec["prompts"].get(name)
        if prompt is None:
            raise ProtocolError("unknown_prompt", prompt=name)
        if invalid := arguments.violations(_schema(prompt), values, exchange.spec):
            raise arguments.error_for(invalid, exchange.revision["errors"])
        return exchange.invoke(prompt, values)

    def complete(self, exchange: Exchange, outcome: Any) -> list[Effect]:
        prompt = exchange.definition
        if isinstance(outcome, str):
            outcome = {"messages": [{"role": "user", "content": {"type": "text", "text": outcome}}]}
        description = {key: prompt[key] for key in ("description",) if key in prompt}
        logged = outbound.log_line(exchange.spec, "prompted", exchange.id, prompt=prompt["name"])
        return [logged, *outbound.send_result(exchange, "prompt_result", description | outcome)]


list_prompts, get_prompt = _ListPrompts(), _GetPrompt()


def _entry(prompt: Prompt) -> dict[str, Any]:
    listed = [{"name": name, **argument} for name, argument in prompt.get("arguments", {}).items()]
    return listing.entry(prompt) | ({"arguments": listed} if listed else {})


def _schema(prompt: Prompt) -> JsonObject:
    """Return the JSON Schema of the arguments."""
    defined = prompt.get("arguments", {})
    required: Any = [name for name, argument in defined.items() if argument.get("required")]
    properties: Any = {name: {} for name in defined}
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}
