"""logging/setLevel. Specification: Server Features / Utilities / Logging."""

from __future__ import annotations

from tmkb.errors import ProtocolError
from tmkb.protocol import outbound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.protocol.effects import Effect
    from tmkb.protocol.requests import Exchange


class _SetLevel:
    """Set the client's minimum level of log messages. Raises ProtocolError for an unknown level."""

    def begin(self, exchange: Exchange) -> list[Effect]:
        level, levels = exchange.params["level"], exchange.revision["logging"]["levels"]
        if not isinstance(level, str) or level not in levels:
            raise ProtocolError("unknown_level", level=level, known=", ".join(levels))
        exchange.connection.log_level = level
        return outbound.send_result(exchange, "empty_result", {})


set_level = _SetLevel()
