"""initialize, server/discover and ping. Specification: Basic / Lifecycle, Initialization; Basic / Utilities / Ping."""

from __future__ import annotations

from tmkb.protocol import budget, negotiation, outbound
from tmkb.protocol.handlers import listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.protocol.effects import Effect
    from tmkb.protocol.requests import Exchange


class _Initialize:
    """Negotiate the connection's revision. Raises ProtocolError if the client's capabilities need too much memory."""

    def begin(self, exchange: Exchange) -> list[Effect]:
        connection, server = exchange.connection, exchange.spec["server"]
        declared: Any = exchange.params.get("capabilities", {})
        connection.budget.reserve(budget.footprint(declared))
        connection.capabilities = declared
        connection.negotiated = exchange.revision
        connection.server_capabilities = server["capabilities"]
        values = {**server, "protocolVersion": exchange.revision["revision"], "serverInfo": server}
        return outbound.send_result(exchange, "initialize_result", values)


class _Discover:
    """Describe the server to a client of a stateless revision."""

    def begin(self, exchange: Exchange) -> list[Effect]:
        server = exchange.spec["server"]
        values = {**server, **listing.cache_hints(exchange), "supportedVersions": negotiation.versions(exchange.spec)}
        return outbound.send_result(exchange, "discover_result", values)


class _Ping:
    """Reply to ping."""

    def begin(self, exchange: Exchange) -> list[Effect]:
        return outbound.send_result(exchange, "empty_result", {})


initialize, discover, ping = _Initialize(), _Discover(), _Ping()
