"""completion/complete. Specification: Server Features / Utilities / Completion."""

from __future__ import annotations

from tmkb.errors import ProtocolError
from tmkb.protocol import validation
from tmkb.protocol.handlers.prompts import refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect, Invoke
    from tmkb.protocol.messages import Id, Request
    from tmkb.schema.model import Definition, Revision
    from tmkb.schema.values import JsonObject


def complete(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """The values of an argument that begin with what is there already, in any case; none for one that has no list."""
    params: Any = request.params  # the method's params schema has seen to them
    method: Any = revision["methods"][request.method]
    given = params["argument"]
    listed = _listed(connection, revision, method, params)
    known = "context" in method["params"]["properties"]  # elsewhere it is a key like any unknown one
    others = params.get("context", {}).get("arguments", {}) if known else {}
    if isinstance(listed, str):
        definition: Definition = {"kind": "completion", "name": listed, "provider": listed}
        asked: JsonObject = {"value": given["value"], "arguments": others}
        return connection.invoke(request, revision, definition, asked, (_finish, refuse))
    if isinstance(listed, dict):
        listed = listed["values"].get(others.get(listed["by"]), [])
    return _answer(connection, revision, request.id, method["most"], given["value"], listed)


def _finish(connection: Connection, invoke: Invoke, outcome: Any) -> list[Effect]:
    """The response with what an operation has listed."""
    methods: Any = invoke.revision["methods"].values()
    most = next(method["most"] for method in methods if "completes" in method)
    given: Any = invoke.arguments["value"]
    return _answer(connection, invoke.revision, invoke.request_id, most, given, outcome)


def _answer(
    connection: Connection, revision: Revision, request_id: Id, most: int, begun: str, listed: list[str]
) -> list[Effect]:
    found = [value for value in listed if value.lower().startswith(begun.lower())]
    completion = {"values": found[:most], "total": len(found), "hasMore": len(found) > most}
    return connection.give(request_id, revision, "completion_result", {"completion": completion})


def _listed(connection: Connection, revision: Revision, method: Any, params: Any) -> Any:
    """What the definition says about the values of the argument. Raises ProtocolError where there is none such."""
    arguments = _arguments(connection, revision, method, params["ref"])
    name = params["argument"]["name"]
    if name not in arguments:
        raise ProtocolError("unknown_argument", argument=name)
    return arguments[name]


def _arguments(connection: Connection, revision: Revision, method: Any, ref: Any) -> dict[str, Any]:
    """Argument → its values, of the prompt or the template that ``ref`` means. Raises ProtocolError."""
    reference = method["completes"][ref["type"]]
    named: JsonObject = {"properties": {"ref": {"required": [reference["named_by"]]}}}
    if found := validation.violations(named, {"ref": ref}, connection.spec):
        raise validation.refusal(found, revision["errors"])
    wanted = ref[reference["named_by"]]
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
