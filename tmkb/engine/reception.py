"""What comes in: one line of a peer, or the outcome of an operation that it asked for. Effects follow."""

from __future__ import annotations

from tmkb.engine import dispatch, message, negotiation, refusal
from tmkb.engine.effects import Batch, Fault, Invoke, Send
from tmkb.engine.message import Notification, Request, Response
from tmkb.errors import ProtocolError, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.engine.connection import Connection
    from tmkb.engine.effects import Effect, Outcome
    from tmkb.values import JsonValue


def receive(connection: Connection, line: bytes) -> list[Effect]:
    """What follows from one line. Never raises: what is wrong with the line is in the effects."""
    try:
        value = message.decode(line)
    except ProtocolError as error:
        return connection.refuse(None, error)
    traced = connection.trace("message_in", message.readable_id(value), value)
    return [*traced, *(_batch(connection, value) if isinstance(value, list) else _one(connection, value))]


def receive_too_large(connection: Connection) -> list[Effect]:
    """What follows from a line that is longer than the server reads."""
    limit = connection.spec["server"]["limits"]["message_bytes"]
    return connection.refuse(None, ProtocolError("message_too_large", limit=limit))


def complete(connection: Connection, invoke: Invoke, outcome: Outcome) -> list[Effect]:
    """What follows from an operation that has ended: with a value, or with an error that the caller is told."""
    connection.running.pop(invoke.request_id, None)
    if isinstance(outcome, ProtocolError):
        if outcome.error in invoke.revision["errors"]:
            effects = connection.refuse(invoke.request_id, outcome)
        else:  # newer than the client
            unknown = refusal.sentence(ToolError("error_unknown", cause=outcome.error), invoke.revision["errors"])
            effects = invoke.refuse(connection, invoke, [unknown])
    elif isinstance(outcome, ToolError):
        effects = invoke.refuse(connection, invoke, [refusal.sentence(outcome, invoke.revision["errors"])])
    else:
        effects = invoke.finish(connection, invoke, outcome)
    return _placed(invoke, effects)


def fail(connection: Connection, invoke: Invoke) -> list[Effect]:
    """What follows from an operation whose outcome cannot be sent."""
    return _placed(invoke, connection.refuse(invoke.request_id, ProtocolError("internal_error")))


def cancel(connection: Connection, invoke: Invoke) -> list[Effect]:
    """What follows from an operation that was stopped: no response, and a batch does not wait for one."""
    connection.running.pop(invoke.request_id, None)
    if (batch := invoke.batch) is None:
        return []
    batch.fill(invoke, None)
    return _answered(batch)


def _one(connection: Connection, value: JsonValue, in_batch: bool = False) -> list[Effect]:
    request_id = message.readable_id(value)
    try:
        received = message.read(value)
        if in_batch and isinstance(received, Request) and negotiation.asks_by(connection.spec, received):
            raise ProtocolError("invalid_request")  # 2025-03-26, Basic / Lifecycle: never part of a batch
        return _dispatch(connection, received)
    except ProtocolError as error:
        return connection.refuse(request_id, error)
    except Exception as error:
        return [Fault(error, request_id), *connection.refuse(request_id, ProtocolError("internal_error"))]


def _dispatch(connection: Connection, received: Request | Notification | Response) -> list[Effect]:
    if isinstance(received, Request):
        return dispatch.request(connection, received)
    if isinstance(received, Response):
        if received.id not in connection.asked:
            return [connection.note("response_dropped", received.id)]
        from tmkb.engine import saying

        return saying.answered(connection, received)
    try:
        return dispatch.notification(connection, received)
    except ProtocolError:
        return []  # JSON-RPC 2.0: a notification is never answered, not even with an error


def _batch(connection: Connection, values: list[JsonValue]) -> list[Effect]:
    limit = connection.spec["server"]["limits"]["batch_messages"]
    if not connection.revision["message"]["batch"] or not values:
        return connection.refuse(None, ProtocolError("invalid_request"))
    if len(values) > limit:
        return connection.refuse(None, ProtocolError("batch_too_large", limit=limit))
    batch = Batch()
    effects: list[Effect] = []
    for effect in (effect for value in values for effect in _one(connection, value, in_batch=True)):
        if isinstance(effect, Send):
            batch.add(effect.message)
            continue
        if isinstance(effect, Invoke):
            batch.reserve(effect)
        effects.append(effect)
    return [*effects, *_answered(batch)]


def _placed(invoke: Invoke, effects: list[Effect]) -> list[Effect]:
    """``effects`` with the response put into the batch that waits for it, which is sent when it is complete."""
    if (batch := invoke.batch) is None:
        return effects
    kept: list[Effect] = []
    for effect in effects:
        if isinstance(effect, Send):
            batch.fill(invoke, effect.message)
        else:
            kept.append(effect)
    return [*kept, *_answered(batch)]


def _answered(batch: Batch) -> list[Effect]:
    responses = batch.complete()
    return [Send(message.batch(responses))] if responses else []
