"""Which revision governs a message. Specification: Basic / Lifecycle, Version Negotiation."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tmkb.engine.message import Notification, Request
    from tmkb.spec.model import Revision, Spec


def preferred(spec: Spec) -> Revision:
    """The first revision the server offers: what a client gets that asks for none we know."""
    return spec["revisions"][spec["server"]["revisions"][0]]


def governing(spec: Spec, negotiated: Revision | None, message: Request | Notification) -> Revision:
    """The revision asked for, where the message asks for one on offer; else the negotiated one; else the preferred."""
    if (param := asks_by(spec, message)) is None:
        return negotiated or preferred(spec)
    asked = message.params.get(param)
    return spec["revisions"].get(asked, preferred(spec)) if isinstance(asked, str) else preferred(spec)


def asks_by(spec: Spec, message: Request | Notification) -> str | None:
    """The param by which ``message`` asks for a revision; None for all that do not negotiate."""
    method = preferred(spec)["methods"].get(message.method)
    return None if method is None else method.get("negotiates")
