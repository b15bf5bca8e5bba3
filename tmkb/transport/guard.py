"""Who may talk to a server over HTTP: the hosts it answers to, the pages that may call it, and the tokens it knows.

Specification: Basic / Transports / Streamable HTTP, Security Warning; RFC 6750.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Mapping

from tmkb.errors import ProtocolError

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class Guard:
    """What a request has to show before anything else of it is looked at."""

    def __init__(
        self,
        hosts: Collection[str] = LOOPBACK,
        origins: Collection[str] = (),
        tokens: Collection[str] = (),
    ) -> None:
        """``hosts`` without a port; ``origins`` besides those of the hosts; ``tokens``: SHA-256 in hexadecimal, each of
        a token that opens; with none of them nobody is asked for one."""
        self.hosts = {host.lower() for host in hosts}
        self.origins = {origin.lower() for origin in origins}
        self.tokens = [token.lower().encode("ascii") for token in tokens]

    def admit(self, headers: Mapping[str, str]) -> str:
        """Return the principal of a request: the digest of its token, or an empty text if the server has no tokens.

        Raises:
            ProtocolError: if the host, the origin or the token is not permitted.
        """
        self.check_source(headers)
        return self._known(headers.get("authorization", "")) if self.tokens else ""

    def check_source(self, headers: Mapping[str, str]) -> None:
        """Check Host and Origin of a request. Raises ProtocolError if one of them is not permitted."""
        host = headers.get("host", "")
        if _name(host) not in self.hosts:
            raise ProtocolError("foreign_host", host=host)
        origin = headers.get("origin")
        if origin is not None and not self._is_ours(origin.lower()):
            raise ProtocolError("foreign_origin", origin=origin)

    def _is_ours(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return origin in self.origins or (scheme in ("http", "https") and _name(host) in self.hosts)

    def _known(self, authorization: str) -> str:
        scheme, _, token = authorization.partition(" ")
        digest = hashlib.sha256(token.strip().encode("utf-8", "surrogateescape")).hexdigest()
        # All are compared, so that the time tells nothing.
        found = [hmac.compare_digest(known, digest.encode("ascii")) for known in self.tokens]
        if scheme.lower() != "bearer" or not any(found):
            raise ProtocolError("unauthorized")
        return digest


def _name(host: str) -> str:
    """``host`` in lower case and without its port."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() and (not name.count(":") or name.endswith("]")) else host.lower()
