"""What comes in: one line of a peer, or the outcome of an operation that it asked for. Effects follow."""

from __future__ import annotations

from tmkb.errors import ProtocolError, ToolError
from tmkb.protocol import dispatch, messages, negotiation, refusal
from tmkb.protocol.effects import Batch, Drop, Fault, InputRequired, Invoke, Send
from tmkb.protocol.messages import Notification, Request, Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect, Outcome
    from tmkb.schema.values import JsonValue


def receive(connection: Connection, line: bytes) -> list[Effect]:
    """What follows from one line. Never raises: what is wrong with the line is in the effects."""
    try:
        value = messages.decode(line)
    except ProtocolError as error:
        return connection.refuse(None, error)
    return take(connection, value)


def take(connection: Connection, value: JsonValue) -> list[Effect]:
    """What follows from a message, or a batch of them. Never raises, likewise."""
    traced = connection.trace("message_in", messages.readable_id(value), value)
    return [*traced, *(_batch(connection, value) if isinstance(value, list) else _one(connection, value))]


def receive_too_large(connection: Connection) -> list[Effect]:
    """What follows from a line that is longer than the server reads."""
    limit = connection.spec["server"]["limits"]["message_bytes"]
    return connection.refuse(None, ProtocolError("message_too_large", limit=limit))


def complete(connection: Connection, invoke: Invoke, outcome: Outcome) -> list[Effect]:
    """What follows from an operation that has ended: with a value, or with an error that the caller is told."""
    connection.release(invoke)
    errors = invoke.revision["errors"]
    if isinstance(outcome, InputRequired):
        effects = _asked(connection, invoke, outcome)
    elif isinstance(outcome, ProtocolError | ToolError) and outcome.error not in errors:  # newer than the client
        unknown = refusal.failure(ToolError("error_unknown", cause=outcome.error), errors)
        effects = invoke.refuse(connection, invoke, [unknown])
    elif isinstance(outcome, ProtocolError):
        effects = connection.refuse(invoke.request_id, outcome, invoke.revision)
    elif isinstance(outcome, ToolError) and errors[outcome.error]["surface"] == "protocol":
        effects = connection.refuse(invoke.request_id, ProtocolError(outcome.error, **outcome.fields), invoke.revision)
    elif isinstance(outcome, ToolError):
        effects = invoke.refuse(connection, invoke, [refusal.failure(outcome, errors)])
    else:
        effects = invoke.finish(connection, invoke, outcome)
    if invoke.task is not None:
        return _settled(connection, invoke, effects)
    return _placed(connection, invoke, effects)


def detach(connection: Connection, invoke: Invoke) -> list[Effect]:
    """The response that the call goes on as a task. Raises ProtocolError where there are too many."""
    invoke.task = connection.tasks.begin(connection, invoke)
    connection.release(invoke)
    given = connection.give(invoke.request_id, invoke.revision, "task_begun", invoke.task.view())
    placed, invoke.batch = _placed(connection, invoke, given), None
    return placed


def _settled(connection: Connection, invoke: Invoke, effects: list[Effect]) -> list[Effect]:
    """``effects`` without the response, which is what has become of the task."""
    kept: list[Effect] = []
    for effect in effects:
        if isinstance(effect, Send):
            connection.tasks.settle(invoke.task, messages.decode(effect.message))
        else:
            kept.append(effect)
    return kept


def _asked(connection: Connection, invoke: Invoke, outcome: InputRequired) -> list[Effect]:
    """The result in which the client is asked."""
    questions = {
        key: {"method": question.method, "params": question.params or {}} for key, question in outcome.questions.items()
    }
    values = {"inputRequests": questions, "requestState": outcome.state}
    return connection.give(invoke.request_id, invoke.revision, "input_required_result", values)


def fail(connection: Connection, invoke: Invoke, error: Exception) -> list[Effect]:
    """Return the effects of an operation that ends because of ``error``, an exception of ours."""
    connection.release(invoke)
    ref = connection.reference()
    refused = connection.refuse(invoke.request_id, ProtocolError("internal_error", ref=ref), invoke.revision)
    effects = _settled(connection, invoke, refused) if invoke.task is not None else _placed(connection, invoke, refused)
    return [Fault(error, invoke.request_id, ref), *effects]


def cancel(connection: Connection, invoke: Invoke) -> list[Effect]:
    """What follows from an operation that was stopped: no response, and a batch does not wait for one."""
    connection.release(invoke)
    if invoke.task is not None:
        invoke.task.cancel()
        return []
    if (batch := invoke.batch) is None:
        return [Drop(invoke.request_id)]
    batch.fill(invoke, None)
    about = batch.about
    return _sent(connection, batch) or ([] if batch.running else [Drop(about)])


def refuse_for_full_batch(connection: Connection, invoke: Invoke) -> list[Effect]:
    """Refuse an operation that was not started because the answer to its batch is full."""
    return complete(connection, invoke, _batch_full(invoke.batch))


def _batch_full(batch: Batch | None) -> ProtocolError:
    assert batch is not None
    return ProtocolError("batch_answer_too_large", limit=batch.limit)


def broken(connection: Connection, given: JsonValue | bytes, error: Exception) -> list[Effect]:
    """Return the effects of a message that could not be handled because of ``error``, an exception of ours.

    Each request is answered with an internal error, a notification or a response is not answered.
    """
    ref = connection.reference()
    try:
        value = messages.decode(given) if isinstance(given, bytes) else given
    except ProtocolError:
        value = None
    told = ProtocolError("internal_error", ref=ref)
    ids = [id_ for id_ in map(messages.request_id, value if isinstance(value, list) else [value]) if id_ is not None]
    responses = [sent.message for id_ in ids for sent in connection.refuse(id_, told) if isinstance(sent, Send)]
    fault = Fault(error, ids[0] if ids else None, ref)
    if not responses:
        return [fault]
    return [fault, Send(messages.batch(responses) if isinstance(value, list) else responses[0], answers=True)]


def _one(connection: Connection, value: JsonValue, batch: Batch | None = None) -> list[Effect]:
    id_ = messages.readable_id(value)
    revision, accepted, answered = None, False, True
    try:
        received = messages.read(value)
        answered = isinstance(received, Request)  # JSON-RPC 2.0: nothing else is, not even with an error
        if isinstance(received, Response):
            return _answered(connection, received)
        if batch is not None and isinstance(received, Request) and negotiation.asks_by(connection.spec, received):
            raise ProtocolError("invalid_request")  # 2025-03-26, Basic / Lifecycle: never part of a batch
        if batch is not None and batch.full and isinstance(received, Request):
            raise _batch_full(batch)
        if isinstance(received, Notification):
            return _noted(connection, received)
        revision = negotiation.governing(connection.spec, connection.negotiated, received, connection.headers)
        connection.accept(received.id, batch)
        accepted = True
        effects = dispatch.request(connection, revision, received)
        for effect in effects:
            if isinstance(effect, Invoke):
                connection.in_flight[received.id] = effect
        return effects
    except ProtocolError as error:
        return connection.refuse(id_, error, revision, accepted) if answered else []
    except Exception as error:
        ref = connection.reference()
        told = ProtocolError("internal_error", ref=ref)
        return [Fault(error, id_, ref), *(connection.refuse(id_, told, revision, accepted) if answered else [])]


def _noted(connection: Connection, received: Notification) -> list[Effect]:
    """What follows from a notification. JSON-RPC 2.0: it is never answered, not even with an error."""
    try:
        revision = negotiation.governing(connection.spec, connection.negotiated, received)
        return dispatch.notification(connection, revision, received)
    except ProtocolError:
        return []


def _answered(connection: Connection, received: Response) -> list[Effect]:
    """What follows from the answer to a request of ours, if it is one."""
    if received.id not in connection.asked:
        return [connection.note("response_dropped", received.id)]
    from tmkb.protocol import outbound

    return outbound.answered(connection, received)


def _batch(connection: Connection, values: list[JsonValue]) -> list[Effect]:
    limits = connection.spec["server"]["limits"]
    limit = limits["batch_messages"]
    if not connection.revision["message"]["batch"] or not values:
        return connection.refuse(None, ProtocolError("invalid_request"))
    if len(values) > limit:
        return connection.refuse(None, ProtocolError("batch_too_large", limit=limit))
    batch = Batch(limits["batch_answer_bytes"])
    effects: list[Effect] = []
    for effect in (effect for value in values for effect in _one(connection, value, batch)):
        if isinstance(effect, Send):
            batch.add(effect.message)
            continue
        if isinstance(effect, Invoke):
            batch.reserve(effect)
        effects.append(effect)
    for id_ in batch.ids if batch.running else ():
        connection.in_flight.setdefault(id_, None)
    return [*effects, *_sent(connection, batch)]


def _placed(connection: Connection, invoke: Invoke, effects: list[Effect]) -> list[Effect]:
    """``effects`` with the response put into the batch that waits for it, which is sent when it is complete."""
    if (batch := invoke.batch) is None:
        return effects
    kept: list[Effect] = []
    for effect in effects:
        if isinstance(effect, Send):
            batch.fill(invoke, effect.message)
        else:
            kept.append(effect)
    return [*kept, *_sent(connection, batch)]


def _sent(connection: Connection, batch: Batch) -> list[Effect]:
    """Return the batch when no response is missing, which frees the ids of its requests."""
    if batch.running:
        return []
    about, responses = batch.about, batch.complete()
    for id_ in batch.ids:
        connection.in_flight.pop(id_, None)
    batch.ids = []
    return [Send(messages.batch(responses), about, answers=True)] if responses else []
