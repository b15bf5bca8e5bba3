"""What a client needs to get a token: the metadata of the resource, and challenges in `WWW-Authenticate`.

Specification: RFC 9728; RFC 6750, section 3; the chapter Authorization of MCP.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from tmkb.access.policy import Policy
from tmkb.schema.values import JsonValue

WELL_KNOWN = "/.well-known/oauth-protected-resource"
_ERRORS = {400: "invalid_request", 401: "invalid_token", 403: "insufficient_scope"}  # RFC 6750, section 3.1
_FORBIDDEN = re.compile(r"[^ !#-\[\]-~]")  # in the description of an error


def metadata(policy: Policy) -> bytes:
    """Return the metadata of the resource as JSON."""
    value: dict[str, JsonValue] = {
        "resource": policy.resource,
        "authorization_servers": [entry["issuer"] for entry in policy.issuers],
        "bearer_methods_supported": ["header"],
    }
    if policy.first_scopes:
        value["scopes_supported"] = [*policy.first_scopes]
    return json.dumps(value).encode()


def metadata_url(resource: str) -> str:
    """Return the URL of the metadata of ``resource`` (RFC 9728, section 3.1)."""
    parts = urlsplit(resource)
    return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path.rstrip('/')}"


def metadata_paths(policy: Policy) -> frozenset[str]:
    """Return the paths below which a client, or a proxy that passes the path on, looks for the metadata."""
    if not policy.issuers:
        return frozenset()
    return frozenset((WELL_KNOWN, f"{WELL_KNOWN}/mcp", urlsplit(metadata_url(policy.resource)).path))


def challenge(policy: Policy, status: int, sentence: str, scopes: Sequence[str], with_token: bool) -> str:
    """Return the value of `WWW-Authenticate`.

    Args:
        policy: the access file.
        status: of the response.
        sentence: what is wrong, if the request had a token.
        scopes: what the client needs.
        with_token: whether the request had a token. Without one, the challenge names no error (RFC 6750, section 3).
    """
    if not policy.issuers:
        return "Bearer"
    params: Mapping[str, str] = {"resource_metadata": metadata_url(policy.resource)}
    if with_token:
        params = {"error": _ERRORS[status], "error_description": _FORBIDDEN.sub("", sentence), **params}
    if scopes:
        params = {**params, "scope": " ".join(scopes)}
    return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in params.items())
