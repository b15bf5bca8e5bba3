"""Headers that let pages of other origins read responses (CORS).

Specification: https://fetch.spec.whatwg.org/#http-cors-protocol
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_FIELD_NAMES = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+(\s*,\s*[!#$%&'*+.^_`|~0-9A-Za-z-]+)*")
_SECONDS = "7200"  # for which a browser keeps the answer to a preflight; no browser keeps it for longer than a day


def is_preflight(verb: str, headers: Mapping[str, str]) -> bool:
    """Whether a browser asks with this request if it may send another one."""
    return verb == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def preflight(headers: Mapping[str, str], methods: Collection[str]) -> dict[str, str]:
    """Make the headers that permit ``methods``, and the header fields that the preflight with ``headers`` names."""
    permitted = {"access-control-allow-methods": ", ".join(methods), "access-control-max-age": _SECONDS}
    names = headers.get("access-control-request-headers", "").strip()
    if _FIELD_NAMES.fullmatch(names):
        permitted["access-control-allow-headers"] = names
    return permitted


def response(origin: str | None, exposed: Collection[str]) -> dict[str, str]:
    """Make the headers of every response: ``origin``, which has to be permitted, may read it, and so the header fields
    ``exposed``."""
    vary = {"vary": "Origin"}
    if origin is None:
        return vary
    return {
        **vary,
        "access-control-allow-origin": origin,
        "access-control-expose-headers": ", ".join(exposed),
    }
