"""initialize, server/discover and ping. Specification: Basic / Lifecycle, Initialization; Basic / Utilities / Ping."""

from __future__ import annotations

from tmkb.protocol import budget, negotiation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect
    from tmkb.protocol.messages import Request
    from tmkb.schema.model import Revision


def initialize(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """Answer with the server's identity and the revision that governs the connection from now on.

    Raises:
        ProtocolError: if the client's capabilities take more memory than a session may.
    """
    server = connection.spec["server"]
    result = {**server, "protocolVersion": revision["revision"], "serverInfo": server}
    declared = request.params.get("capabilities", {})
    connection.budget.hold(budget.footprint(declared))
    connection.capabilities = declared if isinstance(declared, dict) else {}
    connection.negotiated = revision
    connection.promised = server["capabilities"]
    return connection.give(request.id, revision, "initialize_result", result)


def discover(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """Say who we are, to a client that does not shake hands."""
    server = connection.spec["server"]
    known = {**server, **server.get("cache", {}), "supportedVersions": negotiation.versions(connection.spec)}
    return connection.give(request.id, revision, "discover_result", known)


def ping(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """Be alive."""
    return connection.give(request.id, revision, "empty_result", {})
