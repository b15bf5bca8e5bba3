"""logging/setLevel. Specification: Server Features / Utilities / Logging."""

from __future__ import annotations

from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect
    from tmkb.protocol.messages import Request
    from tmkb.schema.model import Revision


def set_level(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """From now on send messages of this level and above."""
    level, levels = request.params["level"], revision["logging"]["levels"]
    if not isinstance(level, str) or level not in levels:
        raise ProtocolError("unknown_level", level=level, known=", ".join(levels))
    connection.log_level = level
    return connection.give(request.id, revision, "empty_result", {})
