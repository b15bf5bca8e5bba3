"""What is sent to a peer: results, errors and notifications, in the shape of the revision that it speaks.

What an object may have is listed in the revision's ``objects``; other fields are not sent. Content of a type that the
revision does not know is replaced by a text. The sentences of errors are those of the spec.
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

_ENVELOPE_ERRORS = 10  # failures that an envelope contains in full


# --- Responses


def send_result(exchange: Exchange, kind: str, values: Mapping[str, Any]) -> list[Effect]:
    """Return the response with the result ``kind``."""
    return send_encoded(exchange, encode_result(exchange, kind, values))


def send_encoded(exchange: Exchange, result: bytes) -> list[Effect]:
    """Return the response with a result that is encoded already."""
    return [Send(exchange.connection, messages.response(exchange.id, result), exchange.id, answers=True)]


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
    """Return the error response to a request; without an id if none could be read.

    ``accepted``: False if another request may be using the id, so that this response must not end that one.
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
            answers=True,
            status=errors[error.error].get("status", 200),
        ),
    ]


def send_tool_failures(exchange: Exchange, failures: list[Failure]) -> list[Effect]:
    """Return the result of a tool call that failed."""
    sentences: list[JsonValue] = [failed.sentence for failed in failures]
    logged = [log_line(exchange.spec, "refused", exchange.id, sentence=failed.sentence) for failed in failures]
    values = STYLES[exchange.spec["server"].get("results", "plain")][1](failures)
    return [
        *trace(exchange.connection, "validation_error", exchange.id, sentences),
        *logged,
        *send_result(exchange, "call_result", values),
    ]


def send_tool_error(exchange: Exchange, error: ToolError) -> list[Effect]:
    """Return the response for ``error``: a result or, where the table of errors says so, an error of the protocol."""
    errors = exchange.revision["errors"]
    if errors[error.error]["surface"] == "protocol":
        refused = ProtocolError(error.error, **error.fields)
        return send_error(exchange.connection, refused, exchange.id, exchange.revision)
    return send_tool_failures(exchange, [failure(error, errors)])


# --- Notifications


def send_progress(exchange: Exchange, item: operation.Progress) -> list[Effect]:
    """Return the notification, for a client that sent a token. Progress that does not grow is not sent."""
    meta: Any = exchange.params.get("_meta", {})
    token = meta.get("progressToken")
    if token is None or item.progress <= exchange.progress:
        return []
    exchange.progress = item.progress
    values = {"progress": item.progress, "total": item.total, "message": item.message}
    present: Any = {name: value for name, value in values.items() if value is not None}
    return notify_client(exchange, "progress", {"progressToken": token} | present)


def send_log(exchange: Exchange, item: operation.Log) -> list[Effect]:
    """Return the notification, for a client that wants messages of this level."""
    levels = exchange.revision["logging"]["levels"]
    if exchange.log_level is None or levels.index(item.level) < levels.index(exchange.log_level):
        return []
    params: JsonObject = {"level": item.level, "data": item.data}
    return notify_client(exchange, "log", params | ({} if item.logger is None else {"logger": item.logger}))


def notify_client(exchange: Exchange, role: str, params: JsonObject) -> list[Effect]:
    """Return the notification that has this role in the revision, as a part of ``exchange``."""
    name = method_of(exchange.revision, role)
    return _notification(exchange.connection, exchange.spec, exchange.revision, name, params, exchange.id)


def broadcast(connection: Connection, item: operation.Notify) -> list[Effect]:
    """Return the notification for a client that has shaken hands, and for each of its streams that subscribes to it."""
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
    declared = spec["server"]["capabilities"] if connection.promised is None else connection.promised
    if method is None or ("capability" in method and not negotiation.declares(declared, method["capability"])):
        return []
    if "subscribed" in method and (params is None or params.get(method["subscribed"]) not in connection.subscribed):
        return []
    if "params_shape" in method and params is not None:
        params = fit(revision, method["params_shape"], params)
    return [Send(connection, messages.notification(name, params), about)]


# --- Lines of the log


def log_line(spec: Spec, line: str, request_id: Id | None, **fields: object) -> Log:
    """Return the effect that writes the line ``line`` of the server's log."""
    return Log(spec["server"]["log"][line], request_id, fields)


def trace(connection: Connection, kind: str, request_id: Id | None, value: JsonValue) -> list[Effect]:
    """Return the effect that writes a line of the debug log, if there is one."""
    return [Trace(kind, request_id, value)] if connection.traced else []


# --- Errors


class Failure:
    """One error as a peer sees it: a sentence, a code, and data, if any."""

    __slots__ = ("code", "data", "sentence")

    def __init__(self, entry: ErrorTemplate, shown: Mapping[str, JsonValue], fields: Mapping[str, JsonValue]) -> None:
        """``shown``: the fields as the sentence shows them; ``fields``: as they are."""
        self.sentence = template.fill(entry["message"], shown)
        self.code: int | str | None = entry.get("code")
        self.data: JsonValue = None
        if "data" in entry:
            data = entry["data"]
            named: JsonValue = {name: {"$value": name} for name in data} if isinstance(data, list) else data
            self.data = template.fill_tree(named, fields)


def failure(error: ProtocolError | ToolError, errors: Mapping[str, ErrorTemplate]) -> Failure:
    """Render ``error``. Strings, which may come from the peer, are cut in the sentence."""
    return Failure(errors[error.error], template.cut_values(error.fields), error.fields)


def wire_error(failed: Failure) -> JsonObject:
    """Return the ``error`` member of a response: code, message, and data where there is any."""
    return {"code": failed.code, "message": failed.sentence} | ({} if failed.data is None else {"data": failed.data})


# --- Results of tools/call, in the style that the server names
#
# plain: as the protocol has it. envelope: also `success`, and `data` or `error` with its code, message and details; the
# same as a text in `content`, and in `structuredContent`. The revision lists which of these fields are sent.


def tool_result(server: Server, tool: Any, outcome: Result | JsonValue) -> JsonObject:
    """Return the result of a call from what the operation of ``tool`` returned."""
    return STYLES[server.get("results", "plain")][0](tool, outcome)


def _plain(tool: Any, outcome: Result | JsonValue) -> JsonObject:
    """Return the fields of a result. A value becomes a text; with an output schema, structured content too."""
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
    """Put a value, or the structured content of a result, else its content, into `data`."""
    if not isinstance(outcome, Result):
        return _envelope({"success": True, "data": outcome})
    data: Any = outcome.content if outcome.structured is None else outcome.structured
    values = _envelope({"success": not outcome.is_error, "error" if outcome.is_error else "data": data})
    return values if outcome.meta is None else {**values, "_meta": outcome.meta}


def _enveloped_failure(failures: list[Failure]) -> JsonObject:
    """Return the first failure as the error; where there are more, all of them in its details."""
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
    """Return the object ``kind``: those of ``values`` that the revision knows, in its order."""
    fitted: JsonObject = _object(revision["objects"], revision["objects"][kind], values)
    return fitted


def _result(revision: Revision, kind: str, values: Mapping[str, Any], server: Server) -> JsonObject:
    fitted = fit(revision, kind, values)
    if "identity" in revision:
        meta: Any = fitted.get("_meta", {})
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
    """Yield ``value``, or a copy for each entry of the field that may hold only one."""
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
    """Return the schema of a form without the fields that the revision's forms cannot have."""
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
