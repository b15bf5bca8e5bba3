"""initialize and ping. Specification: Basic / Lifecycle, Initialization; Basic / Utilities / Ping."""

from __future__ import annotations

from tmkb.engine import message, shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.engine.connection import Connection
    from tmkb.engine.effects import Effect
    from tmkb.engine.message import Request
    from tmkb.spec.model import Revision
    from tmkb.values import JsonObject


def initialize(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """Say who we are and which revision it will be; from here on that revision governs the connection."""
    server = connection.spec["server"]
    result: JsonObject = {
        "protocolVersion": revision["revision"],
        "capabilities": shape.fit(revision, "server_capabilities", server["capabilities"]),
        "serverInfo": shape.fit(revision, "implementation", server),
    }
    if "instructions" in server:
        result["instructions"] = server["instructions"]
    declared = request.params.get("capabilities", {})
    connection.capabilities = declared if isinstance(declared, dict) else {}
    connection.negotiated = revision
    return connection.respond(request.id, message.encode(result))


def ping(connection: Connection, revision: Revision, request: Request) -> list[Effect]:
    """Be alive."""
    return connection.respond(request.id, b"{}")
