"""Which revision governs a message. Specification: Basic / Lifecycle, Version Negotiation; Basic / Versioning.

A revision with ``sender`` is named by each request, all others are agreed on in a handshake; both are served together.
"""

from __future__ import annotations

from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tmkb.engine.message import Notification, Request
    from tmkb.spec.model import Revision, Spec


def preferred(spec: Spec) -> Revision:
    """The first revision the server offers to those who shake hands; where there is none, the first of all."""
    offered = [spec["revisions"][name] for name in spec["server"]["revisions"]]
    return next((revision for revision in offered if "sender" not in revision), offered[0])


def governing(spec: Spec, negotiated: Revision | None, message: Request | Notification) -> Revision:
    """The revision that the message names or asks for, where it is on offer; else the negotiated, else the preferred.

    Raises ProtocolError where it names one that is not on offer so, or none and the server knows no handshake.
    """
    if "_meta" in message.params and (named := _named(spec, message.params["_meta"])) is not None:
        return named
    found = negotiated or preferred(spec)
    if (param := asks_by(spec, message)) is not None:
        asked = message.params.get(param)
        known = spec["revisions"].get(asked) if isinstance(asked, str) else None
        found = known if known is not None and "sender" not in known else preferred(spec)
    if "sender" in found and hasattr(message, "id"):
        raise unsupported(spec, message.params.get(param or "", ""))
    return found


def asks_by(spec: Spec, message: Request | Notification) -> str | None:
    """The param by which ``message`` asks for a revision; None for all that do not negotiate."""
    for name in spec["server"]["revisions"]:
        method = spec["revisions"][name]["methods"].get(message.method)
        if method is not None and "negotiates" in method:
            return method["negotiates"]
    return None


def unsupported(spec: Spec, requested: Any) -> ProtocolError:
    """The refusal of a revision that is not served, or not in this way."""
    supported: Any = versions(spec)
    return ProtocolError("unsupported_revision", requested=requested, supported=supported)


def versions(spec: Spec) -> list[str]:
    """All revisions that are served, newest first."""
    return sorted(spec["server"]["revisions"], reverse=True)


def _named(spec: Spec, meta: Any) -> Revision | None:
    """The revision that the `_meta` of a request names; None where it names none."""
    for name in spec["server"]["revisions"]:
        revision = spec["revisions"][name]
        key = revision["sender"]["revision"] if "sender" in revision else None
        if key is not None and isinstance(meta, dict) and isinstance(meta.get(key), str):
            named = spec["revisions"].get(meta[key])
            if named is None or "sender" not in named:
                raise unsupported(spec, meta[key])
            return named
        if key is not None and isinstance(meta, dict) and _speaks(revision, meta):
            return revision  # whose rules will refuse it
    return None


def _speaks(revision: Revision, meta: Any) -> bool:
    """Whether ``meta`` has any of the keys by which this revision's requests describe themselves."""
    return "sender" in revision and any(key in meta for key in revision["sender"].values())
