"""The ladder: what a message has to get past before its handler sees it. The order of the rungs is behaviour.

Before it: bytes → JSON → message (``message.py``), and which revision governs (``negotiation.py``). After it: the
handler; and only when that has succeeded, the new state. A refused message changes nothing.
"""

from __future__ import annotations

import sys

from tmkb.errors import ProtocolError
from tmkb.protocol import lifecycle, refusal, validation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tmkb.protocol.connection import Connection
    from tmkb.protocol.effects import Effect
    from tmkb.protocol.messages import Notification, Request
    from tmkb.schema.model import Method, Revision
    from tmkb.schema.values import JsonObject

    Handler = Callable[[Connection, Revision, Any], list[Effect]]

# What a revision file may name as a method's handler → the module in handlers/, imported when first used.
HANDLERS = {
    "call_tool": "tools",
    "cancel": "cancellation",
    "cancel_task": "tasks",
    "complete": "completion",
    "discover": "handshake",
    "get_prompt": "prompts",
    "get_task": "tasks",
    "initialize": "handshake",
    "list_prompts": "prompts",
    "listen": "subscriptions",
    "list_resources": "resources",
    "list_templates": "resources",
    "list_tools": "tools",
    "ping": "handshake",
    "read_resource": "resources",
    "set_level": "logging",
    "subscribe": "resources",
    "unsubscribe": "resources",
    "update_task": "tasks",
}
_FOUND: dict[str, Handler] = {}


def request(connection: Connection, revision: Revision, message: Request) -> list[Effect]:
    """What ``message`` leads to under ``revision``. Raises ProtocolError at the rung that refuses it."""
    if "sender" in revision:
        _described(connection, revision, message)
    if connection.headers is not None:
        from tmkb.protocol import headers

        headers.check(connection.spec, revision, connection.headers, message)
    method = _served(connection, revision, message, "request")
    state = _accepted(connection, revision, message)
    _fitting(connection, revision, message, method)
    if "sender" not in revision:
        _described(connection, revision, message)
    if "extension" in method:
        refusal.need_extension(connection.client(revision, message), method["extension"])
    effects = handler(method["handler"])(connection, revision, message)
    _commit(connection, revision, state)
    return [*connection.trace("handler", message.id, {"method": message.method, "name": method["handler"]}), *effects]


def notification(connection: Connection, revision: Revision, message: Notification) -> list[Effect]:
    """What ``message`` leads to under ``revision``. Raises ProtocolError where a request would be refused."""
    method = _served(connection, revision, message, "notification")
    state = _accepted(connection, revision, message)
    effects = handler(method["handler"])(connection, revision, message) if "handler" in method else []
    _commit(connection, revision, state)
    return effects


def handler(name: str) -> Handler:
    """The function of that name in the module that `HANDLERS` has for it."""
    if name not in _FOUND:
        module = f"{__package__}.handlers.{HANDLERS[name]}"
        __import__(module)
        _FOUND[name] = getattr(sys.modules[module], name)
    return _FOUND[name]


def _served(connection: Connection, revision: Revision, message: Request | Notification, kind: str) -> Method:
    """method_not_found: the revision has no such method, or it needs a capability that the server does not declare."""
    method = revision["methods"].get(message.method)
    if method is None or method["kind"] != kind or method["from"] == "server":
        raise ProtocolError("method_not_found", method=message.method)
    if "capability" in method and not connection.declares(method["capability"]):
        raise ProtocolError("method_not_found", method=message.method)
    if "extension" in method and not connection.extends(method["extension"]):
        raise ProtocolError("method_not_found", method=message.method)
    return method


def _accepted(connection: Connection, revision: Revision, message: Request | Notification) -> str:
    """The refusals of the lifecycle's table; else the state that comes next."""
    table = connection.spec["lifecycles"][revision["lifecycle"]]
    return lifecycle.after(table, table["start"] if "sender" in revision else connection.state, message.method)


def _commit(connection: Connection, revision: Revision, state: str) -> None:
    """The connection's new state; a request that describes itself leaves none."""
    if "sender" not in revision:
        connection.state = state


def _fitting(connection: Connection, revision: Revision, message: Request, method: Method) -> None:
    """invalid_params, or what the method calls it: the first thing that is wrong with its params."""
    found = validation.violations(method.get("params", {}), message.params, connection.spec)
    if found:
        invalid = method.get("invalid", "invalid_params")
        raise validation.refusal(found, revision["errors"], invalid, method.get("violations"))


def _described(connection: Connection, revision: Revision, message: Request) -> None:
    """invalid_params: what a request says of itself is not what the revision wants."""
    if "_meta" in message.params or "sender" in revision:
        within: JsonObject = {"type": "object", "required": ["_meta"], "properties": {"_meta": revision["meta"]}}
        found = validation.violations(within, message.params, connection.spec)
        if found:
            raise validation.refusal(found, revision["errors"])
