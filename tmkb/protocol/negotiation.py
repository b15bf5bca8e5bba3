"""Which revision governs a message. Specification: Basic / Lifecycle, Version Negotiation; Basic / Versioning.

A revision with ``sender`` is named by each request, all others are agreed on in a handshake; both are served together.
"""

from __future__ import annotations

from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tmkb.protocol.messages import Notification, Request
    from tmkb.schema.model import Revision, Spec
    from tmkb.schema.values import JsonValue


def preferred(spec: Spec) -> Revision:
    """The first revision the server offers to those who shake hands; where there is none, the first of all."""
    return spec["revisions"][spec["negotiation"]["preferred"]]


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
    if said is not None:
        _agree(spec, said, meta)
    if (speaks := speaker(spec, meta)) is not None:
        return _named(spec, speaks, meta)
    if said is not None and (by_header := _headed(spec, said)) is not None:
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
    return spec["negotiation"]["version_params"].get(message.method)


def describes_itself(spec: Spec, value: JsonValue, said: Mapping[str, str]) -> bool:
    """Whether ``value``, which HTTP brings with the headers ``said``, is a message that is no part of a handshake."""
    params: Any = value.get("params") if isinstance(value, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return _headed(spec, said) is not None or speaker(spec, meta) is not None


def speaker(spec: Spec, meta: Any) -> Revision | None:
    """The revision that describes requests as ``meta`` does, with any of its keys; None where there is none."""
    if not isinstance(meta, dict):
        return None
    found = (each for each in _described(spec) if any(key in meta for key in each["sender"].values()))
    return next(found, None)


def unsupported(spec: Spec, requested: Any) -> ProtocolError:
    """The refusal of a revision that is not served, or not in this way."""
    supported: Any = versions(spec)
    return ProtocolError("unsupported_revision", requested=requested, supported=supported)


def versions(spec: Spec) -> list[str]:
    """All revisions that are served, newest first."""
    return sorted(spec["server"]["revisions"], reverse=True)


def _described(spec: Spec) -> Iterator[Revision]:
    """The revisions on offer whose requests describe themselves."""
    return (spec["revisions"][name] for name in spec["negotiation"]["stateless"])


def _named(spec: Spec, speaks: Revision, meta: Any) -> Revision:
    """The revision that the `_meta` of a request names; where it names none, that whose rules will refuse it."""
    name = meta.get(speaks["sender"]["revision"])
    if not isinstance(name, str):
        return speaks
    named = spec["revisions"].get(name)
    if named is None or "sender" not in named:
        raise unsupported(spec, name)
    return named


def _headed(spec: Spec, said: Mapping[str, str]) -> Revision | None:
    """The revision that the headers ``said`` name, of those whose requests describe themselves."""
    found = (r for r in _described(spec) if said.get(r["http"]["version"].lower(), "").strip() == r["revision"])
    return next(found, None)


def _agree(spec: Spec, said: Mapping[str, str], meta: Any) -> None:
    """Raises ProtocolError where ``meta`` names a revision and the headers ``said`` do not name the same."""
    from tmkb.protocol import headers

    if (speaks := speaker(spec, meta)) is not None and isinstance(named := meta.get(speaks["sender"]["revision"]), str):
        headers.expect(said, speaks["http"]["version"], named)
