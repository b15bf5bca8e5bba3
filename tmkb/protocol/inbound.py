"""Receive a line: check its messages in a fixed order, and pass each to its handler.

Clients see the order of the checks. Before them, `messages` decodes the line and `negotiation` selects the governing
revision. The docstring of a check begins with the id of the error that it raises. The connection's new state is set
only after the handler's `begin`, so a refused message changes nothing.
"""

from __future__ import annotations

from tmkb.errors import ProtocolError
from tmkb.protocol import arguments, messages, negotiation, outbound, requests
from tmkb.protocol.effects import Ended, Invoke, LogException, Send
from tmkb.protocol.messages import Notification, Request, Response
from tmkb.protocol.requests import Batch, Exchange, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect
    from tmkb.schema.model import Lifecycle, Method, Revision
    from tmkb.schema.values import JsonObject, JsonValue

_PERMITTED = {"tools", "resources", "prompts"}  # capabilities whose definitions need permission


def receive(connection: Connection, line: bytes) -> list[Effect]:
    """Decode one line and return its effects. Errors of the line become error responses."""
    try:
        value = messages.decode(line)
    except ProtocolError as error:
        return _refuse(connection, error)
    return receive_value(connection, value)


def receive_value(connection: Connection, value: JsonValue) -> list[Effect]:
    """Return the effects of a decoded message, or of a batch of them."""
    effects = outbound.trace(connection, "message_in", messages.readable_id(value), value) if connection.traced else []
    return [*effects, *(_batch(connection, value) if isinstance(value, list) else _message(connection, value))]


def receive_too_large(connection: Connection) -> list[Effect]:
    """Return the effects of a line that exceeds the size limit."""
    limit = connection.spec["server"]["limits"]["message_bytes"]
    return _refuse(connection, ProtocolError("message_too_large", limit=limit))


def fail(connection: Connection, message: JsonValue | bytes, error: Exception) -> list[Effect]:
    """Return the effects of a message whose handling raised ``error``, an unexpected exception.

    Each request gets an internal error as its response.
    """
    ref = connection.reference()
    try:
        value = messages.decode(message) if isinstance(message, bytes) else message
    except ProtocolError:
        value = None
    internal = ProtocolError("internal_error", ref=ref)
    ids = [id_ for id_ in map(messages.request_id, value if isinstance(value, list) else [value]) if id_ is not None]
    effects = [effect for id_ in ids for effect in outbound.send_error(connection, internal, id_)]
    responses = [effect.message for effect in effects if isinstance(effect, Send)]
    logged = LogException(error, ids[0] if ids else None, ref)
    if not responses:
        return [logged]
    response = messages.batch(responses) if isinstance(value, list) else responses[0]
    return [logged, Send(connection, response, is_response=True)]


def next_state(lifecycle: Lifecycle, state: str, method: str) -> str:
    """Return the state after ``method``. Raises ProtocolError if ``state`` refuses the method."""
    row = lifecycle["states"][state]
    accepts, refuses = row.get("accepts", {}), row.get("refuses", {})
    if method in accepts:
        return accepts[method]
    if method in refuses:
        raise ProtocolError(refuses[method])
    if "*" in accepts:
        return accepts["*"]
    raise ProtocolError(row["otherwise"])


def _message(connection: Connection, value: JsonValue, batch: Batch | None = None) -> list[Effect]:
    id_ = messages.readable_id(value)
    revision, accepted, wants_response, exchange = None, False, True, None
    try:
        message = messages.read(value)
        wants_response = isinstance(message, Request)
        if isinstance(message, Response):
            return _response(connection, message)
        if isinstance(message, Notification):
            return _notification(connection, message)
        if batch is not None:
            _check_batch(connection, message, batch)
        revision = negotiation.governing(connection.snapshot.spec, connection.negotiated, message, connection.headers)
        requests.admit(connection, message.id, batch)
        accepted = True
        exchange = Exchange(connection, revision, message, message.id)
        return _audited(connection, value, revision, "permitted", _request(exchange))
    except ProtocolError as error:
        sent: list[Effect] = []
        if wants_response:
            refused = outbound.send_error(connection, error, id_, revision, accepted)
            sent = _audited(connection, value, revision, error.error, refused)
        return sent + _ended(connection, exchange, error)
    except Exception as error:
        ref = connection.reference()
        internal = ProtocolError("internal_error", ref=ref)
        sent = outbound.send_error(connection, internal, id_, revision, accepted) if wants_response else []
        return [LogException(error, id_, ref), *sent, *_ended(connection, exchange, internal)]


def _refuse(connection: Connection, error: ProtocolError) -> list[Effect]:
    """Return the response to a message that is no valid request or batch."""
    return outbound.send_error(connection, error) + _ended(connection, None, error)


def _ended(connection: Connection, exchange: Exchange | None, error: ProtocolError) -> list[Effect]:
    """Return the effect for the observer of a refused message, if there is one."""
    return [] if connection.clock is None else [Ended(exchange, error.error)]


def _audited(
    connection: Connection, value: JsonValue, revision: Revision | None, decision: str, effects: list[Effect]
) -> list[Effect]:
    """Return ``effects``, after a line of the audit log if there is one."""
    return [outbound.audit(connection, value, revision, decision), *effects] if connection.caller.audited else effects


def _check_batch(connection: Connection, message: Request, batch: Batch) -> None:
    """invalid_request, batch_answer_too_large. 2025-03-26, Basic / Lifecycle: initialize is never part of a batch."""
    if negotiation.version_param(connection.spec, message):
        raise ProtocolError("invalid_request")
    if batch.full:
        raise requests.batch_full(batch)


def _request(exchange: Exchange) -> list[Effect]:
    """Check ``exchange`` and begin its handler."""
    connection, revision = exchange.connection, exchange.revision
    if "request_metadata" in revision:
        _check_meta(exchange)
    if connection.headers is not None:
        _check_headers(exchange)
    method = _check_method(exchange, "request")
    state = _check_state(exchange)
    _check_params(exchange, method)
    if "request_metadata" not in revision:
        _check_meta(exchange)
    _check_permission(exchange, method)
    if "extension" in method:
        negotiation.require_extension(exchange.capabilities, method["extension"])
    effects: list[Effect] = requests.handler(method["handler"]).begin(exchange)
    _commit(exchange, state)
    for effect in effects:
        if isinstance(effect, Invoke):
            connection.in_flight[exchange.id] = exchange
    if connection.clock is not None and exchange.id not in connection.in_flight:
        effects = [*effects, Ended(exchange, exchange.error)]
    if not connection.traced:
        return effects
    handled: JsonObject = {"method": exchange.method, "name": method["handler"]}
    return [*outbound.trace(connection, "handler", exchange.id, handled), *effects]


def _notification(connection: Connection, message: Notification) -> list[Effect]:
    """Return the effects of a notification, which gets no response, not even an error (JSON-RPC 2.0)."""
    try:
        revision = negotiation.governing(connection.spec, connection.negotiated, message)
        exchange = Exchange(connection, revision, message)
        method = _check_method(exchange, "notification")
        state = _check_state(exchange)
        effects: list[Effect] = requests.handler(method["handler"]).begin(exchange) if "handler" in method else []
    except ProtocolError:
        return []
    _commit(exchange, state)
    return effects


def _response(connection: Connection, response: Response) -> list[Effect]:
    if response.id not in connection.client_requests:
        return [outbound.log_line(connection.spec, "response_dropped", response.id)]
    from tmkb.protocol import client_requests

    return client_requests.receive(connection, response)


def _check_method(exchange: Exchange, kind: str) -> Method:
    """method_not_found: the revision lacks the method, or the server does not declare its capability."""
    method = exchange.revision["methods"].get(exchange.method)
    declared = exchange.spec["server"]["capabilities"]
    if (
        method is None
        or method["kind"] != kind
        or method["from"] == "server"
        or ("capability" in method and not negotiation.declares(declared, method["capability"]))
        or ("extension" in method and not negotiation.declares_extension(declared, method["extension"]))
    ):
        raise ProtocolError("method_not_found", method=exchange.method)
    return method


def _check_state(exchange: Exchange) -> str:
    """server_not_initialized, already_initialized, …: the state refuses the method. Return the state after it."""
    table = exchange.spec["lifecycles"][exchange.revision["lifecycle"]]
    state = table["start"] if "request_metadata" in exchange.revision else exchange.connection.state
    return next_state(table, state, exchange.method)


def _check_params(exchange: Exchange, method: Method) -> None:
    """invalid_params, or the error in the method's key ``invalid``: the params break its schema."""
    if invalid := arguments.violations(method.get("params", {}), exchange.params, exchange.spec):
        error = method.get("invalid", "invalid_params")
        raise arguments.error_for(invalid, exchange.revision["errors"], error, method.get("violations"))


def _check_permission(exchange: Exchange, method: Method) -> None:
    """insufficient_scope: the caller may not use the tool, prompt or resource that the method is `named_by`."""
    kind = method.get("capability", "").partition(".")[0]
    if exchange.connection.caller.permissions is None or "named_by" not in method or kind not in _PERMITTED:
        return
    name = str(exchange.params[method["named_by"]])
    if not exchange.connection.permits(kind, name):
        raise refusal(exchange.connection, kind, name)


def _check_meta(exchange: Exchange) -> None:
    """invalid_params: ``params._meta`` breaks the schema of the revision."""
    if "_meta" in exchange.params or "request_metadata" in exchange.revision:
        schema: JsonObject = {
            "type": "object",
            "required": ["_meta"],
            "properties": {"_meta": exchange.revision["meta"]},
        }
        if invalid := arguments.violations(schema, exchange.params, exchange.spec):
            raise arguments.error_for(invalid, exchange.revision["errors"])


def _check_headers(exchange: Exchange) -> None:
    """header_mismatch: an HTTP header differs from the body."""
    from tmkb.protocol import headers

    assert exchange.connection.headers is not None
    request = Request(exchange.id, exchange.method, exchange.params)
    headers.check(exchange.spec, exchange.revision, exchange.connection.headers, request)


def _commit(exchange: Exchange, state: str) -> None:
    """Set the connection's new state, unless the request carries its own metadata."""
    if "request_metadata" not in exchange.revision:
        exchange.connection.state = state


def _batch(connection: Connection, values: list[JsonValue]) -> list[Effect]:
    limits = connection.spec["server"]["limits"]
    limit = limits["batch_messages"]
    if not connection.revision["message"]["batch"] or not values:
        return _refuse(connection, ProtocolError("invalid_request"))
    if len(values) > limit:
        return _refuse(connection, ProtocolError("batch_too_large", limit=limit))
    batch = Batch(limits["batch_answer_bytes"])
    effects: list[Effect] = []
    for effect in (effect for value in values for effect in _message(connection, value, batch)):
        if isinstance(effect, Send):
            batch.add(effect.message)
            continue
        if isinstance(effect, Invoke):
            batch.reserve(effect.exchange)
        effects.append(effect)
    for id_ in batch.ids if batch.pending else ():
        connection.in_flight.setdefault(id_, None)
    return [*effects, *requests.flush(connection, batch)]
