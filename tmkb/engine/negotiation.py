"""Which revision governs a message. Specification: Basic / Lifecycle, Version Negotiation; Basic / Versioning.

A revision with ``sender`` is named by each request, all others are agreed on in a handshake; both are served together.
"""

from __future__ import annotations

from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tmkb.engine.message import Notification, Request
    from tmkb.spec.model import Revision, Spec
    from tmkb.values import JsonValue


def preferred(spec: Spec) -> Revision:
    """The first revision the server offers to those who shake hands; where there is none, the first of all."""
    offered = [spec["revisions"][name] for name in spec["server"]["revisions"]]
    return next((revision for revision in offered if "sender" not in revision), offered[0])


def governing(
    spec: Spec,
    negotiated: Revision | None,
    message: Request | Notification,
    said: Mapping[str, str] | None = None,
) -> Revision:
    """The revision that the message names or asks for, where it is on offer; else the negotiated, else the preferred.

    ``said``: the headers of the HTTP request, which may name one too. Raises ProtocolError where they do not agree,
    where the message names one that is not on offer so, or none and the server knows no handshake.
    """
    meta = message.params.get("_meta")
    by_header = None
    if said is not None:
        from tmkb.engine import headers

        headers.agree(spec, said, meta if isinstance(meta, dict) else {})
        by_header = headers.revision(spec, said)
    if meta is not None and (named := _named(spec, meta)) is not None:
        return named
    if by_header is not None:
        return by_header  # whose rules will refuse what does not name it
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


def describes_itself(spec: Spec, value: JsonValue, said: Mapping[str, str]) -> bool:
    """Whether ``value``, which HTTP brings with the headers ``said``, is a message that is no part of a handshake."""
    from tmkb.engine import headers

    params: Any = value.get("params") if isinstance(value, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    spoken = (spec["revisions"][name] for name in spec["server"]["revisions"])
    return headers.revision(spec, said) is not None or (
        isinstance(meta, dict) and any(_speaks(revision, meta) for revision in spoken)
    )


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
