"""Probes of load balancers and orchestrators: whether the server is alive, and whether it is ready for requests.

They need no token and permit any host, because an orchestrator sends the address of the container as ``Host``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tmkb.errors import ProtocolError
from tmkb.protocol import messages, negotiation, outbound

if TYPE_CHECKING:
    from tmkb.schema.values import JsonValue
    from tmkb.transport.engine import Engine
    from tmkb.transport.streams import Response

READY = "/readyz"
PATHS = ("/healthz", "/livez", READY)


class Condition(NamedTuple):
    """Something that is not as it should be.

    ``error`` describes it. ``blocks``: whether the server cannot serve any client; otherwise it is only shown.
    """

    error: ProtocolError
    blocks: bool = False


def answer(path: str, response: Response, engine: Engine) -> None:
    """Complete ``response`` to a probe. Only `READY` depends on the conditions of ``engine``."""
    if path != READY:
        _complete(response, 200, "text/plain", b"ok\n")
        return
    errors = negotiation.preferred(engine.spec)["errors"]
    shown: dict[str, JsonValue] = {
        name: outbound.failure(each.error, errors).sentence for name, each in engine.conditions.items()
    }
    ready = not any(each.blocks for each in engine.conditions.values())
    body = messages.encode({"ready": ready, "conditions": shown})
    _complete(response, 200 if ready else 503, "application/json", body + b"\n")


def _complete(response: Response, status: int, media_type: str, body: bytes) -> None:
    response.complete(status, {"content-type": media_type, "cache-control": "no-store"}, body)
