"""notifications/cancelled. Specification: Basic / Utilities / Cancellation."""

from __future__ import annotations

from tmkb.protocol import outbound
from tmkb.protocol.effects import Cancel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.protocol.effects import Effect
    from tmkb.protocol.requests import Exchange


class _Cancel:
    """Cancel a request. The id of an unknown or completed request is ignored."""

    def begin(self, exchange: Exchange) -> list[Effect]:
        connection, request_id = exchange.connection, exchange.params.get("requestId")
        if not isinstance(request_id, str | int) or isinstance(request_id, bool):
            return []
        if request_id in connection.listening:
            from tmkb.protocol.handlers import subscriptions

            subscriptions.remove(connection, request_id)
            effects: list[Effect] = []
        elif request := connection.in_flight.get(request_id):
            effects = [Cancel(request)]
        else:
            return []
        return [outbound.log_line(exchange.spec, "cancelled", request_id), *effects]


cancel = _Cancel()
