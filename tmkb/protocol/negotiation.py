"""Select the revision that governs a message, and look up declared capabilities and extensions.

A request whose `_meta` has the keys of ``request_metadata`` names its revision itself. All other revisions are
negotiated in a handshake. One connection may use both kinds. Specification: Basic / Lifecycle, Version Negotiation;
Basic / Versioning.
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
    """Return the first revision with a handshake in the server's list, else the first of the list."""
    return spec["revisions"][spec["negotiation"]["preferred"]]


def governing(
    spec: Spec,
    negotiated: Revision | None,
    message: Request | Notification,
    headers: Mapping[str, str] | None = None,
) -> Revision:
    """Return the revision that the message names, else the negotiated one, else the preferred one.

    Args:
        spec: what the server serves.
        negotiated: the revision of the handshake, if there was one.
        message: the message.
        headers: HTTP headers, which may also name a revision.

    Raises:
        ProtocolError: if headers and message disagree, if the named revision is not served in this way, or if no
            revision is named and the server has none with a handshake.
    """
    meta = message.params.get("_meta")
    if headers is not None:
        _check_header(spec, headers, meta)
    if (stateless := describing(spec, meta)) is not None:
        return _named(spec, stateless, meta)
    if headers is not None and (by_header := _in_headers(spec, headers)) is not None:
        return by_header  # its rules refuse a message without metadata
    revision = negotiated or preferred(spec)
    if (param := version_param(spec, message)) is not None:
        requested = message.params.get(param)
        known = spec["revisions"].get(requested) if isinstance(requested, str) else None
        revision = known if known is not None and "request_metadata" not in known else preferred(spec)
    if "request_metadata" in revision and hasattr(message, "id"):
        raise unsupported(spec, message.params.get(param or "", ""))
    return revision


def version_param(spec: Spec, message: Request | Notification) -> str | None:
    """Return the param in which ``message`` requests a revision; None if it does not negotiate."""
    return spec["negotiation"]["version_params"].get(message.method)


def describes_itself(spec: Spec, value: JsonValue, headers: Mapping[str, str]) -> bool:
    """Return whether the message ``value``, sent with these HTTP headers, is stateless."""
    params: Any = value.get("params") if isinstance(value, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return _in_headers(spec, headers) is not None or describing(spec, meta) is not None


def describing(spec: Spec, meta: Any) -> Revision | None:
    """Return the stateless revision that has one of the keys of ``meta``; None if there is none."""
    if not isinstance(meta, dict):
        return None
    matching = (each for each in _stateless(spec) if any(key in meta for key in each["request_metadata"].values()))
    return next(matching, None)


def unsupported(spec: Spec, requested: Any) -> ProtocolError:
    """Build the error for an unsupported revision."""
    supported: Any = versions(spec)
    return ProtocolError("unsupported_revision", requested=requested, supported=supported)


def versions(spec: Spec) -> list[str]:
    """Return the served revisions, newest first."""
    return sorted(spec["server"]["revisions"], reverse=True)


def declares(declared: JsonValue, capability: str) -> bool:
    """Return whether ``declared`` has ``capability``, which may be a flag such as ``resources.subscribe``."""
    for part in capability.split("."):
        declared = declared.get(part, False) if isinstance(declared, dict) else False
    return declared is not False


def declares_extension(declared: JsonObject, extension: str) -> bool:
    """Return whether the capabilities ``declared`` have ``extension``."""
    extensions = declared.get("extensions", {})
    return isinstance(extensions, dict) and extension in extensions


def require_extension(declared: JsonObject, extension: str) -> None:
    """Raise ProtocolError if ``declared``, the client's capabilities, lacks ``extension``."""
    if not declares_extension(declared, extension):
        required: JsonObject = {"extensions": {extension: {}}}
        raise ProtocolError("client_lacks_capability", capability=extension, requiredCapabilities=required)


def client_capabilities(negotiated: JsonObject, revision: Revision, params: JsonObject) -> JsonObject:
    """Return the client's capabilities, from the handshake or, in revisions without one, from the request."""
    if "request_metadata" not in revision:
        return negotiated
    meta: Any = params["_meta"]
    declared: JsonObject = meta[revision["request_metadata"]["capabilities"]]
    return declared


def _stateless(spec: Spec) -> Iterator[Revision]:
    """Yield the stateless revisions: those with ``request_metadata``."""
    return (spec["revisions"][name] for name in spec["negotiation"]["stateless"])


def _named(spec: Spec, stateless: Revision, meta: Any) -> Revision:
    """Return the revision that ``meta`` names, else ``stateless``, whose rules then refuse the request."""
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
