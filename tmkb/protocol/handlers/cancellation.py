"""notifications/cancelled. Specification: Basic / Utilities / Cancellation."""

from __future__ import annotations

from tmkb.protocol.effects import Cancel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect
    from tmkb.protocol.messages import Notification
    from tmkb.schema.model import Revision


def cancel(connection: Connection, revision: Revision, notification: Notification) -> list[Effect]:
    """Stop what the client no longer wants. What is unknown, or has been answered, is ignored."""
    request_id = notification.params.get("requestId")
    if not isinstance(request_id, str | int) or isinstance(request_id, bool):
        return []
    if request_id in connection.listening:
        from tmkb.protocol.handlers import subscriptions

        subscriptions.forget(connection, request_id)
        return [connection.note("cancelled", request_id)]
    invoke = connection.in_flight.get(request_id)
    return [] if invoke is None else [connection.note("cancelled", request_id), Cancel(invoke)]
