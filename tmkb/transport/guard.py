"""Access control for HTTP requests: host names, origins of web pages, and bearer tokens.

Specification: Basic / Transports / Streamable HTTP, Security Warning; RFC 6750.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Collection, Mapping

from tmkb.errors import ProtocolError
from tmkb.protocol.caller import ANONYMOUS, Caller

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def is_loopback(host: str) -> bool:
    """Return whether a name or an address, without a port, is that of this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class Guard:
    """Checks the headers of each request before the request is parsed."""

    def __init__(
        self,
        hosts: Collection[str] = LOOPBACK,
        origins: Collection[str] = (),
        tokens: Collection[str] = (),
    ) -> None:
        """Create a guard.

        Args:
            hosts: the permitted values of ``Host``, without a port.
            origins: permitted origins, in addition to those of ``hosts``.
            tokens: SHA-256 digests of the valid tokens in hexadecimal; without any, requests need no token.
        """
        self.hosts = {host.lower() for host in hosts}
        self.origins = {origin.lower() for origin in origins}
        self.tokens = [token.lower().encode("ascii") for token in tokens]

    def admit(self, headers: Mapping[str, str]) -> Caller:
        """Return the caller of a request. Its principal is the digest of its token, or "" if the server has no tokens.

        Raises:
            ProtocolError: if the host, the origin or the token is not permitted.
        """
        self.check_source(headers)
        return Caller(self._authenticate(headers.get("authorization", ""))) if self.tokens else ANONYMOUS

    def check_source(self, headers: Mapping[str, str]) -> None:
        """Check Host and Origin of a request. Raises ProtocolError if one of them is not permitted."""
        host = headers.get("host", "")
        if _name(host) not in self.hosts:
            raise ProtocolError("foreign_host", host=host)
        origin = headers.get("origin")
        if origin is not None and not self._is_permitted(origin.lower()):
            raise ProtocolError("foreign_origin", origin=origin)

    def _is_permitted(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return origin in self.origins or (scheme in ("http", "https") and _name(host) in self.hosts)

    def _authenticate(self, authorization: str) -> str:
        scheme, _, token = authorization.partition(" ")
        digest = hashlib.sha256(token.strip().encode("utf-8", "surrogateescape")).hexdigest()
        # Compares all digests, so that the duration reveals nothing.
        matches = [hmac.compare_digest(valid, digest.encode("ascii")) for valid in self.tokens]
        if scheme.lower() != "bearer" or not any(matches):
            raise ProtocolError("unauthorized")
        return digest


def _name(host: str) -> str:
    """Return ``host`` in lower case, without its port."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() and (not name.count(":") or name.endswith("]")) else host.lower()
