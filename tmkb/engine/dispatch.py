"""The ladder: what a message has to get past before its handler sees it. The order of the rungs is behaviour.

Before it: bytes → JSON → message (``message.py``), and which revision governs (``negotiation.py``). After it: the
handler; and only when that has succeeded, the new state. A refused message changes nothing.
"""

from __future__ import annotations

from tmkb.engine import lifecycle, negotiation, validation
from tmkb.engine.handlers import handshake, tools
from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tmkb.engine.connection import Connection
    from tmkb.engine.effects import Effect
    from tmkb.engine.message import Notification, Request
    from tmkb.spec.model import Method, Revision

    Handler = Callable[[Connection, Revision, Request], list[Effect]]

# What a revision file may name as a method's handler.
HANDLERS: dict[str, Handler] = {
    "call_tool": tools.call_tool,
    "initialize": handshake.initialize,
    "list_tools": tools.list_tools,
    "ping": handshake.ping,
}


def request(connection: Connection, message: Request) -> list[Effect]:
    """What ``message`` leads to. Raises ProtocolError at the rung that refuses it."""
    revision = negotiation.governing(connection.spec, connection.negotiated, message)
    method = _served(connection, revision, message, "request")
    state = _accepted(connection, revision, message)
    _fitting(connection, revision, message, method)
    effects = HANDLERS[method["handler"]](connection, revision, message)
    connection.state = state
    return [*connection.trace("handler", message.id, {"method": message.method, "name": method["handler"]}), *effects]


def notification(connection: Connection, message: Notification) -> list[Effect]:
    """What ``message`` leads to: at most a new state. Raises ProtocolError where a request would be refused."""
    revision = negotiation.governing(connection.spec, connection.negotiated, message)
    _served(connection, revision, message, "notification")
    connection.state = _accepted(connection, revision, message)
    return []


def _served(connection: Connection, revision: Revision, message: Request | Notification, kind: str) -> Method:
    """method_not_found: the revision has no such method, or it needs a capability that the server does not declare."""
    method = revision["methods"].get(message.method)
    if method is None or method["kind"] != kind or method["from"] == "server":
        raise ProtocolError("method_not_found", method=message.method)
    if "capability" in method and method["capability"] not in connection.spec["server"]["capabilities"]:
        raise ProtocolError("method_not_found", method=message.method)
    return method


def _accepted(connection: Connection, revision: Revision, message: Request | Notification) -> str:
    """The refusals of the lifecycle's table; else the state that comes next."""
    table = connection.spec["lifecycles"][revision["lifecycle"]]
    return lifecycle.after(table, connection.state, message.method)


def _fitting(connection: Connection, revision: Revision, message: Request, method: Method) -> None:
    """invalid_params, or what the method calls it: the first thing that is wrong with its params."""
    found = validation.violations(method.get("params", {}), message.params, connection.spec["types"])
    if found:
        bindings = method.get("violations", {})
        told = validation.sentences(found[:1], "params", bindings, revision["errors"])
        raise ProtocolError(method.get("invalid", "invalid_params"), violation=told[0])
