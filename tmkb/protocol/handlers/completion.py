"""completion/complete. Specification: Server Features / Utilities / Completion."""

from __future__ import annotations

from tmkb.errors import ProtocolError
from tmkb.protocol import arguments, outbound
from tmkb.protocol.handlers.prompts import Operations
from tmkb.protocol.requests import refusal
from tmkb.schema import template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.protocol.effects import Effect
    from tmkb.protocol.requests import Exchange
    from tmkb.schema.model import Definition
    from tmkb.schema.values import JsonObject


class _Complete(Operations):
    """Return the values of an argument that begin with the client's text, ignoring case."""

    def begin(self, exchange: Exchange) -> list[Effect]:
        params: Any = exchange.params  # valid by the schema of the method
        method: Any = exchange.rules
        has_context = "context" in method["params"]["properties"]  # else `context` is an unknown key
        others = params.get("context", {}).get("arguments", {}) if has_context else {}
        values = _values(exchange, method, params)
        if isinstance(values, str):
            definition: Definition = {"kind": "completion", "name": values, "provider": values}
            value: JsonObject = {"value": params["argument"]["value"], "arguments": others}
            return exchange.invoke(definition, value)
        if isinstance(values, dict):
            values = values["values"].get(others.get(values["by"]), [])
        return self.complete(exchange, values)

    def complete(self, exchange: Exchange, outcome: Any) -> list[Effect]:
        params: Any = exchange.params
        prefix, limit = params["argument"]["value"].lower(), exchange.rules["max_values"]
        values = [value for value in outcome if value.lower().startswith(prefix) and _is_permitted(exchange, value)]
        completion = {"values": values[:limit], "total": len(values), "hasMore": len(values) > limit}
        return outbound.send_result(exchange, "completion_result", {"completion": completion})


complete = _Complete()


def _values(exchange: Exchange, method: Any, params: Any) -> Any:
    """Return the values in the argument's definition. Raises ProtocolError if the argument does not exist."""
    values = _arguments(exchange, method, params["ref"])
    name = params["argument"]["name"]
    if name not in values:
        raise ProtocolError("unknown_argument", argument=name)
    return values[name]


def _is_permitted(exchange: Exchange, value: str) -> bool:
    """Return whether the caller may use some resource with ``value`` in its URI; it may use prompts with any value."""
    params: Any = exchange.params
    reference = exchange.rules["completes"][params["ref"]["type"]]
    if reference["definitions"] == "prompts":
        return True
    others = params.get("context", {}).get("arguments", {})
    values = {**others, params["argument"]["name"]: value}
    return exchange.connection.permits_some(params["ref"][reference["named_by"]], values)


def _arguments(exchange: Exchange, method: Any, ref: Any) -> dict[str, Any]:
    """Return argument → values of the prompt or URI template in ``ref``. Raises ProtocolError if it does not exist."""
    spec, reference = exchange.spec, method["completes"][ref["type"]]
    schema: JsonObject = {"properties": {"ref": {"required": [reference["named_by"]]}}}
    if invalid := arguments.violations(schema, {"ref": ref}, spec):
        raise arguments.error_for(invalid, exchange.revision["errors"])
    name = ref[reference["named_by"]]
    is_prompt, connection = reference["definitions"] == "prompts", exchange.connection
    resource = next((each for each in spec["resources"].values() if each.get("uriTemplate") == name), None)
    # The text of the client is no template: it can be long, or not even one.
    is_template = not is_prompt and resource is not None
    if not (connection.permits_some(name) if is_template else connection.permits(reference["definitions"], name)):
        raise refusal(connection, reference["definitions"], name)
    if is_prompt:
        prompt = spec["prompts"].get(name)
        if prompt is not None:
            return {name: argument.get("complete", []) for name, argument in prompt.get("arguments", {}).items()}
    elif resource is not None:
        return {name: resource.get("complete", {}).get(name, []) for name in template.names(name)}
    raise ProtocolError("unknown_reference", reference=name)
