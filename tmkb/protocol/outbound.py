"""Build results, errors and notifications in the shape of the client's revision.

The revision's ``objects`` list the fields of each object; other fields are omitted. Content of an unknown type is
replaced by a text. The messages of errors are in ``schemas/errors.yaml``.
"""

from __future__ import annotations

from tmkb.errors import ProtocolError
from tmkb.protocol import messages, negotiation
from tmkb.protocol.effects import Log, Send, Trace
from tmkb.providers.operation import Result
from tmkb.schema import template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from tmkb.errors import ToolError
    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect
    from tmkb.protocol.messages import Id
    from tmkb.protocol.requests import Exchange
    from tmkb.providers import operation
    from tmkb.schema.model import ErrorTemplate, Revision, Server, Shape, Spec
    from tmkb.schema.values import JsonObject, JsonValue

    Success = Callable[[Any, Result | JsonValue], JsonObject]  # tool, outcome
    Failed = Callable[[list["Failure"]], JsonObject]

_ANSWERS = ("call_result", "contents_result", "prompt_result")  # results with `result_meta` of the server
_ENVELOPE_ERRORS = 10  # listed in one envelope


# --- Responses


def send_result(exchange: Exchange, kind: str, values: Mapping[str, Any]) -> list[Effect]:
    """Return the response with the result ``kind``."""
    return send_encoded(exchange, encode_result(exchange, kind, values))


def send_encoded(exchange: Exchange, result: bytes) -> list[Effect]:
    """Return the response with an encoded result."""
    return [Send(exchange.connection, messages.response(exchange.id, result), exchange.id, is_response=True)]


def encode_result(exchange: Exchange, kind: str, values: Mapping[str, Any]) -> bytes:
    """Encode the result ``kind`` in the shape of the revision."""
    return messages.encode(_result(exchange.revision, kind, values, exchange.spec["server"]))


def send_error(
    connection: Connection,
    error: ProtocolError,
    request_id: Id | None = None,
    revision: Revision | None = None,
    accepted: bool = True,
) -> list[Effect]:
    """Return the error response to a request.

    Args:
        connection: the peer.
        error: the error.
        request_id: the id, or None if the message has no readable id.
        revision: the revision that governs the request, or None for the connection's.
        accepted: False if the request was refused because its id is already in use. This response must not
            end the request that has the id.
    """
    errors = (revision or connection.revision)["errors"]
    failed = failure(error, errors)
    omit_id = connection.revision["message"]["unread_id"] == "absent"
    return [
        log_line(connection.spec, "refused", request_id, sentence=failed.sentence),
        Send(
            connection,
            messages.error_response(request_id, wire_error(failed), omit_id),
            request_id if accepted else None,
            is_response=True,
            status=errors[error.error].get("status", 200),
            error=error,
        ),
    ]


def refuse(exchange: Exchange, error: ProtocolError) -> list[Effect]:
    """Return the error response to the request of ``exchange``."""
    exchange.error = error.error
    return send_error(exchange.connection, error, exchange.id, exchange.revision)


def send_tool_failures(exchange: Exchange, failures: list[Failure]) -> list[Effect]:
    """Return the result of a tool call that failed."""
    exchange.error = failures[0].error
    sentences: list[JsonValue] = [failed.sentence for failed in failures]
    logged = [log_line(exchange.spec, "refused", exchange.id, sentence=failed.sentence) for failed in failures]
    values = STYLES[exchange.spec["server"].get("results", "plain")][1](failures)
    return [
        *trace(exchange.connection, "validation_error", exchange.id, sentences),
        *logged,
        *send_result(exchange, "call_result", values),
    ]


def send_tool_error(exchange: Exchange, error: ToolError) -> list[Effect]:
    """Return the response for ``error``: a result or, if its ``surface`` is the protocol, an error response."""
    errors = exchange.revision["errors"]
    if errors[error.error]["surface"] == "protocol":
        return refuse(exchange, ProtocolError(error.error, **error.fields))
    return send_tool_failures(exchange, [failure(error, errors)])


# --- Notifications


def send_progress(exchange: Exchange, item: operation.Progress) -> list[Effect]:
    """Return the notification if the client sent a progress token and the progress has grown."""
    meta: Any = exchange.params.get("_meta", {})
    token = meta.get("progressToken")
    if token is None or item.progress <= exchange.progress:
        return []
    exchange.progress = item.progress
    values = {"progress": item.progress, "total": item.total, "message": item.message}
    present: Any = {name: value for name, value in values.items() if value is not None}
    return notify_client(exchange, "progress", {"progressToken": token} | present)


def send_log(exchange: Exchange, item: operation.Log) -> list[Effect]:
    """Return the notification if the client's log level includes it."""
    levels = exchange.revision["logging"]["levels"]
    if exchange.log_level is None or levels.index(item.level) < levels.index(exchange.log_level):
        return []
    params: JsonObject = {"level": item.level, "data": item.data}
    return notify_client(exchange, "log", params | ({} if item.logger is None else {"logger": item.logger}))


def notify_client(exchange: Exchange, role: str, params: JsonObject) -> list[Effect]:
    """Return the notification with this role in the revision, related to ``exchange``."""
    name = method_of(exchange.revision, role)
    return _notification(exchange.connection, exchange.spec, exchange.revision, name, params, exchange.id)


def broadcast(connection: Connection, item: operation.Notify) -> list[Effect]:
    """Return the notification for a client after a handshake, and for each subscribed stream."""
    effects: list[Effect] = []
    if connection.negotiated is not None:
        effects += _notification(connection, connection.spec, connection.negotiated, item.method, item.params)
    for stream, (revision, subscribed) in connection.listening.items():
        method: Any = revision["methods"].get(item.method, {})
        wanted = subscribed.get(method.get("listened"))
        subject = (item.params or {}).get(method.get("subscribed"))
        if wanted is True or (isinstance(wanted, list) and subject in wanted):
            meta: JsonObject = {"_meta": {revision["subscription"]: stream}}
            message = messages.notification(item.method, {**(item.params or {}), **meta})
            effects.append(Send(connection, message, stream))
    return effects


def method_of(revision: Revision, role: str) -> str:
    """Return the name of the notification with this role."""
    return next(name for name, method in revision["methods"].items() if method.get("role") == role)


def _notification(
    connection: Connection,
    spec: Spec,
    revision: Revision,
    name: str,
    params: JsonObject | None,
    about: Id | None = None,
) -> list[Effect]:
    method = revision["methods"].get(name)
    declared = (
        spec["server"]["capabilities"] if connection.server_capabilities is None else connection.server_capabilities
    )
    if method is None or ("capability" in method and not negotiation.declares(declared, method["capability"])):
        return []
    if "subscribed" in method and (params is None or params.get(method["subscribed"]) not in connection.subscribed):
        return []
    if "params_shape" in method and params is not None:
        params = fit(revision, method["params_shape"], params)
    return [Send(connection, messages.notification(name, params), about)]


# --- Lines of the log


def log_line(spec: Spec, line: str, request_id: Id | None, **fields: object) -> Log:
    """Return the effect that writes the log line with the id ``line``."""
    return Log(spec["server"]["log"][line], request_id, fields)


def audit(connection: Connection, value: JsonValue, revision: Revision | None, decision: str) -> Log:
    """Return the effect that writes the line of the audit log for the request ``value``.

    ``decision``: `permitted`, or the id of the error.
    """
    message: Any = value if isinstance(value, dict) else {}
    method, params = str(message.get("method")), message.get("params")
    rules: Any = (revision or connection.revision)["methods"].get(method, {})
    named: Any = params if isinstance(params, dict) else {}
    if "completes" in rules and isinstance(named.get("ref"), dict):
        named = named["ref"]
        rules = rules["completes"].get(str(named.get("type")), {})
    name = named.get(rules.get("named_by"))
    return audit_line(connection.spec, connection.caller.audited, method, str(name or "-"), decision, value)


def audit_line(spec: Spec, caller: str, method: str, name: str, decision: str, value: JsonValue = None) -> Log:
    """Return the effect that writes a line of the audit log. Each field is a JSON string, so none can forge another."""
    fields = {"caller": caller, "method": template.cut(method), "name": template.cut(name), "decision": decision}
    encoded = {field: messages.compact(text) for field, text in fields.items()}
    return log_line(spec, "audited", messages.readable_id(value), **encoded)


def trace(connection: Connection, kind: str, request_id: Id | None, value: JsonValue) -> list[Effect]:
    """Return the effect that writes a line of the debug log, if that is enabled."""
    return [Trace(kind, request_id, value)] if connection.traced else []


# --- Errors


class Failure:
    """A rendered error: its id, its sentence, its code and, if any, its data."""

    def __init__(
        self,
        error: str,
        entry: ErrorTemplate,
        shown: Mapping[str, JsonValue],
        fields: Mapping[str, JsonValue],
    ) -> None:
        """``shown``: the fields as the sentence shows them. ``fields``: the original fields."""
        self.error = error
        self.sentence = template.fill(entry["message"], shown)
        self.code: int | str | None = entry.get("code")
        self.data: JsonValue = None
        if "data" in entry:
            data = entry["data"]
            named: JsonValue = {name: {"$value": name} for name in data} if isinstance(data, list) else data
            self.data = template.fill_tree(named, fields)


def failure(error: ProtocolError | ToolError, errors: Mapping[str, ErrorTemplate]) -> Failure:
    """Render ``error``. Its sentence shows strings cut, because they may come from the peer."""
    return Failure(error.error, errors[error.error], template.cut_values(error.fields), error.fields)


def wire_error(failed: Failure) -> JsonObject:
    """Return the ``error`` member of a response: code, message and, if any, data."""
    return {"code": failed.code, "message": failed.sentence} | ({} if failed.data is None else {"data": failed.data})


# --- Results of tools/call, in the style of the server's key `results`
#
# plain: the fields of the protocol. envelope: also `success`, and `data` or `error` with its code, message and details.
# `content` (as a text) and `structuredContent` repeat the envelope. The revision lists which of these fields are sent.


def tool_result(server: Server, tool: Any, outcome: Result | JsonValue) -> JsonObject:
    """Convert the outcome of ``tool`` to the fields of a result."""
    return STYLES[server.get("results", "plain")][0](tool, outcome)


def _plain(tool: Any, outcome: Result | JsonValue) -> JsonObject:
    """A JSON value becomes a text and, if the tool has an output schema, structured content."""
    if not isinstance(outcome, Result):
        text = outcome if isinstance(outcome, str) else messages.compact(outcome)
        structured = outcome if "output" in tool and isinstance(outcome, dict) else None
        outcome = Result([{"type": "text", "text": text}], structured=structured)
    values: Any = {"content": outcome.content, "isError": outcome.is_error}
    if outcome.structured is not None:
        values["structuredContent"] = outcome.structured
    return values if outcome.meta is None else {**values, "_meta": outcome.meta}


def _plain_failure(failures: list[Failure]) -> JsonObject:
    return {"content": _text("\n".join(failure.sentence for failure in failures)), "isError": True}


def _enveloped(tool: Any, outcome: Result | JsonValue) -> JsonObject:
    """`data` contains the JSON value, the structured content, or else the content."""
    if not isinstance(outcome, Result):
        return _envelope({"success": True, "data": outcome})
    data: Any = outcome.content if outcome.structured is None else outcome.structured
    values = _envelope({"success": not outcome.is_error, "error" if outcome.is_error else "data": data})
    return values if outcome.meta is None else {**values, "_meta": outcome.meta}


def _enveloped_failure(failures: list[Failure]) -> JsonObject:
    """The error is the first failure. If there are more, its details list all of them."""
    errors = [_error(failure) for failure in failures[:_ENVELOPE_ERRORS]]
    if len(errors) > 1:
        details = errors[0].get("details")
        errors[0] = {**errors[0], "details": {**(details if isinstance(details, dict) else {}), "errors": [*errors]}}
    return _envelope({"success": False, "error": errors[0]})


def _error(failure: Failure) -> JsonObject:
    error: JsonObject = {"code": failure.code, "message": failure.sentence}
    return error if failure.data is None else {**error, "details": failure.data}


def _envelope(envelope: JsonObject) -> JsonObject:
    text: Any = _text(messages.compact(envelope))
    return {**envelope, "content": text, "isError": not envelope["success"], "structuredContent": envelope}


def _text(text: str) -> JsonValue:
    return [{"type": "text", "text": text}]


# --- Shapes


def fit(revision: Revision, kind: str, values: Mapping[str, Any]) -> JsonObject:
    """Return the object ``kind`` with the fields of ``values`` that the revision has, in its order."""
    fitted: JsonObject = _object(revision["objects"], revision["objects"][kind], values)
    return fitted


def _result(revision: Revision, kind: str, values: Mapping[str, Any], server: Server) -> JsonObject:
    fitted = fit(revision, kind, values)
    meta: Any = fitted.get("_meta", {})
    if "result_meta" in server and kind in _ANSWERS:
        fitted["_meta"] = meta = {**meta, **server["result_meta"]}
    if "identity" in revision:
        fitted["_meta"] = {**meta, revision["identity"]: fit(revision, "implementation", server)}
    return fitted


def _object(objects: Mapping[str, Shape], shape: Shape, values: Mapping[str, Any]) -> Any:
    if "types" in shape:
        return _block(objects, shape, values)
    if "primitives" in shape:
        return _form(shape, values)
    known = {
        name: values[name] if inner is True else _inside(objects, objects[inner], values[name])
        for name, inner in shape["fields"].items()
        if name in values
    }
    return {**shape["always"], **known} if "always" in shape else known


def _inside(objects: Mapping[str, Shape], shape: Shape, value: Any) -> Any:
    if isinstance(value, list):
        return [_object(objects, shape, one) for each in value for one in _single(shape, each)]
    return _object(objects, shape, value) if isinstance(value, dict) else value


def _single(shape: Shape, value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield ``value``, or a copy for each entry of a field that allows only one entry."""
    several = value.get(shape["each"]) if "each" in shape else None
    if isinstance(several, list):
        yield from ({**value, shape["each"]: one} for one in several)
    else:
        yield value


def _block(objects: Mapping[str, Shape], shape: Shape, block: Mapping[str, Any]) -> Any:
    types: Any = shape["types"]
    if block["type"] in types:
        return _object(objects, types[block["type"]], block)
    text = shape["otherwise"].get(block["type"], shape["otherwise"]["*"])
    replacement = template.fill(text, {name: block.get(name, "") for name in template.names(text)})
    return _object(objects, types["text"], {**block, "type": "text", "text": replacement})


def _form(shape: Shape, schema: Mapping[str, Any]) -> Any:
    """Return the schema of a form without the fields that the revision does not support."""
    fields: Mapping[str, Any] = schema.get("properties", {})
    known = {name: _field(shape, field) for name, field in fields.items() if field.get("type") in shape["primitives"]}
    required = [name for name in schema.get("required", []) if name in known]
    return {**schema, "properties": known, **({"required": required} if "required" in schema else {})}


def _field(shape: Shape, field: Mapping[str, Any]) -> Any:
    fitted = dict(field)
    if field["type"] not in shape["defaults"]:
        fitted.pop("default", None)
    if shape["titles"] not in field and "oneOf" in field:
        choices = fitted.pop("oneOf")
        fitted["enum"] = [choice["const"] for choice in choices]
        fitted["enumNames"] = [choice.get("title", choice["const"]) for choice in choices]
    return fitted


STYLES: dict[str, tuple[Success, Failed]] = {
    "envelope": (_enveloped, _enveloped_failure),
    "plain": (_plain, _plain_failure),
}
