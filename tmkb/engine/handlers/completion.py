"""completion/complete. Specification: Server Features / Utilities / Completion."""

from __future__ import annotations

from tmkb import template
from tmkb.engine import message
from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.engine.connection import Connection
    from tmkb.engine.effects import Effect
    from tmkb.engine.message import Request
    from tmkb.spec.model import Revision
    from tmkb.values import JsonObject


def complete(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """The values of an argument that begin with what is there already, in any case; none for one that has no list."""
    params: Any = request.params  # the method's params schema has seen to them
    method = revision["methods"][request.method]
    given = params["argument"]
    values = _values(connection, revision, method, params)
    found = [value for value in values if value.lower().startswith(given["value"].lower())]
    most = method["most"]
    result: JsonObject = {"completion": {"values": [*found[:most]], "total": len(found), "hasMore": len(found) > most}}
    return connection.respond(request.id, message.encode(result))


def _values(connection: Connection, revision: Revision, method: Any, params: Any) -> list[str]:
    """Every value of the argument. Raises ProtocolError where there is no such argument."""
    arguments = _arguments(connection, revision, method, params["ref"])
    name = params["argument"]["name"]
    if name not in arguments:
        raise ProtocolError("unknown_argument", argument=name)
    listed: Any = arguments[name]
    if isinstance(listed, dict):
        known = "context" in method["params"]["properties"]  # elsewhere it is a key like any unknown one
        others = params.get("context", {}).get("arguments", {}) if known else {}
        listed = listed["values"].get(others.get(listed["by"]), [])
    return list(listed)


def _arguments(connection: Connection, revision: Revision, method: Any, ref: Any) -> dict[str, Any]:
    """Argument → its values, of the prompt or the template that ``ref`` means. Raises ProtocolError."""
    reference = method["completes"][ref["type"]]
    wanted = ref.get(reference["named_by"])
    if wanted is None:
        missing = template.fill(
            revision["errors"]["param_required"]["message"], {"field": f"ref.{reference['named_by']}"}
        )
        raise ProtocolError("invalid_params", violation=missing)
    if reference["definitions"] == "prompts":
        prompt = connection.spec["prompts"].get(wanted)
        if prompt is not None:
            return {name: argument.get("complete", []) for name, argument in prompt.get("arguments", {}).items()}
    else:
        for resource in connection.spec["resources"].values():
            if resource.get("uriTemplate") == wanted:
                names = [part.partition("}")[0] for part in resource["uriTemplate"].split("{")[1:]]
                return {name: resource.get("complete", {}).get(name, []) for name in names}
    raise ProtocolError("unknown_reference", reference=wanted)
