"""CORS: headers that let pages of other origins send requests and read responses.

Specification: https://fetch.spec.whatwg.org/#http-cors-protocol
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_FIELD_NAMES = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+(\s*,\s*[!#$%&'*+.^_`|~0-9A-Za-z-]+)*")
_SECONDS = "7200"  # for which a browser may cache the response to a preflight


def is_preflight(verb: str, headers: Mapping[str, str]) -> bool:
    """Return whether this is a preflight request of a browser."""
    return verb == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def preflight(headers: Mapping[str, str], methods: Collection[str]) -> dict[str, str]:
    """Return the headers that permit ``methods``, and the request headers that the preflight names."""
    permissions = {"access-control-allow-methods": ", ".join(methods), "access-control-max-age": _SECONDS}
    names = headers.get("access-control-request-headers", "").strip()
    if _FIELD_NAMES.fullmatch(names):
        permissions["access-control-allow-headers"] = names
    return permissions


def response(origin: str | None, exposed: Collection[str]) -> dict[str, str]:
    """Return the CORS headers of a response.

    Args:
        origin: the permitted origin of the request; None if it has none.
        exposed: the response headers that pages may read.
    """
    vary = {"vary": "Origin"}
    if origin is None:
        return vary
    return {
        **vary,
        "access-control-allow-origin": origin,
        "access-control-expose-headers": ", ".join(exposed),
    }
