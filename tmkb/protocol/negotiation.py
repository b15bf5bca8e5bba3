"""Which revision governs a message, and which capabilities and extensions both sides declare.

Specification: Basic / Lifecycle, Version Negotiation; Basic / Versioning. A revision with ``request_metadata`` is named
by each request, all others are negotiated in a handshake; one connection may use both kinds.
"""

from __future__ import annotations

from tmkb.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tmkb.protocol.messages import Notification, Request
    from tmkb.schema.model import Revision, Spec
    from tmkb.schema.values import JsonObject, JsonValue


def preferred(spec: Spec) -> Revision:
    """Return the first revision with a handshake that the server offers; if it offers none, the first of all."""
    return spec["revisions"][spec["negotiation"]["preferred"]]


def governing(
    spec: Spec,
    negotiated: Revision | None,
    message: Request | Notification,
    headers: Mapping[str, str] | None = None,
) -> Revision:
    """Return the revision that the message names, if it is served; else the negotiated or the preferred one.

    Args:
        spec: what the server serves.
        negotiated: the revision of the handshake, if there was one.
        message: the message.
        headers: those of the HTTP request, which may name a revision too.

    Raises:
        ProtocolError: if headers and message disagree; if the message names a revision that is not served in this way,
            or names none and the server has no revision with a handshake.
    """
    meta = message.params.get("_meta")
    if headers is not None:
        _check_header(spec, headers, meta)
    if (stateless := describing(spec, meta)) is not None:
        return _named(spec, stateless, meta)
    if headers is not None and (by_header := _in_headers(spec, headers)) is not None:
        return by_header  # whose rules will refuse what does not name it
    revision = negotiated or preferred(spec)
    if (param := version_param(spec, message)) is not None:
        requested = message.params.get(param)
        known = spec["revisions"].get(requested) if isinstance(requested, str) else None
        revision = known if known is not None and "request_metadata" not in known else preferred(spec)
    if "request_metadata" in revision and hasattr(message, "id"):
        raise unsupported(spec, message.params.get(param or "", ""))
    return revision


def version_param(spec: Spec, message: Request | Notification) -> str | None:
    """Return the param by which ``message`` asks for a revision; None for messages that do not negotiate."""
    return spec["negotiation"]["version_params"].get(message.method)


def describes_itself(spec: Spec, value: JsonValue, headers: Mapping[str, str]) -> bool:
    """Return whether ``value``, which came with these HTTP headers, is a message that needs no handshake."""
    params: Any = value.get("params") if isinstance(value, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return _in_headers(spec, headers) is not None or describing(spec, meta) is not None


def describing(spec: Spec, meta: Any) -> Revision | None:
    """Return the revision whose requests describe themselves with a key of ``meta``; None if there is none."""
    if not isinstance(meta, dict):
        return None
    matching = (each for each in _stateless(spec) if any(key in meta for key in each["request_metadata"].values()))
    return next(matching, None)


def unsupported(spec: Spec, requested: Any) -> ProtocolError:
    """Build the error for a revision that is not served, or not in this way."""
    supported: Any = versions(spec)
    return ProtocolError("unsupported_revision", requested=requested, supported=supported)


def versions(spec: Spec) -> list[str]:
    """Return the revisions that are served, newest first."""
    return sorted(spec["server"]["revisions"], reverse=True)


def declares(declared: JsonValue, capability: str) -> bool:
    """Return whether ``declared`` has ``capability``, or the flag inside one: ``resources.subscribe``."""
    for part in capability.split("."):
        declared = declared.get(part, False) if isinstance(declared, dict) else False
    return declared is not False


def declares_extension(declared: JsonObject, extension: str) -> bool:
    """Return whether ``declared``, capabilities of either side, has ``extension``."""
    extensions = declared.get("extensions", {})
    return isinstance(extensions, dict) and extension in extensions


def require_extension(declared: JsonObject, extension: str) -> None:
    """Raise ProtocolError if ``declared``, the client's capabilities, lacks ``extension``."""
    if not declares_extension(declared, extension):
        required: JsonObject = {"extensions": {extension: {}}}
        raise ProtocolError("client_lacks_capability", capability=extension, requiredCapabilities=required)


def client_capabilities(negotiated: JsonObject, revision: Revision, params: JsonObject) -> JsonObject:
    """Return what the client declares: in its handshake or, where the revision has none, in the request."""
    if "request_metadata" not in revision:
        return negotiated
    meta: Any = params["_meta"]
    declared: JsonObject = meta[revision["request_metadata"]["capabilities"]]
    return declared


def _stateless(spec: Spec) -> Iterator[Revision]:
    """Yield the revisions whose requests describe themselves."""
    return (spec["revisions"][name] for name in spec["negotiation"]["stateless"])


def _named(spec: Spec, stateless: Revision, meta: Any) -> Revision:
    """Return the revision that ``meta`` names; if it names none, ``stateless``, whose rules will refuse the request."""
    name = meta.get(stateless["request_metadata"]["revision"])
    if not isinstance(name, str):
        return stateless
    named = spec["revisions"].get(name)
    if named is None or "request_metadata" not in named:
        raise unsupported(spec, name)
    return named


def _in_headers(spec: Spec, headers: Mapping[str, str]) -> Revision | None:
    """Return the stateless revision that the headers name."""
    matching = (r for r in _stateless(spec) if headers.get(r["http"]["version"].lower(), "").strip() == r["revision"])
    return next(matching, None)


def _check_header(spec: Spec, headers: Mapping[str, str], meta: Any) -> None:
    """Raise ProtocolError if ``meta`` names a revision and the headers name another."""
    from tmkb.protocol import headers as header

    stateless = describing(spec, meta)
    if stateless is not None and isinstance(named := meta.get(stateless["request_metadata"]["revision"]), str):
        header.expect(headers, stateless["http"]["version"], named)
