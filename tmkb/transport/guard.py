"""Access control for HTTP requests: host names, origins of web pages, and bearer tokens.

Specification: Basic / Transports / Streamable HTTP, Security Warning; Authorization; RFC 6750.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from tmkb.errors import ProtocolError
from tmkb.protocol.caller import ANONYMOUS, Caller

if TYPE_CHECKING:
    from tmkb.access.access import Access

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
        tokens: Collection[str] | Mapping[str, Sequence[str]] = (),
        access: Access | None = None,
    ) -> None:
        """Create a guard.

        Args:
            hosts: the permitted values of ``Host``, without a port.
            origins: permitted origins, in addition to those of ``hosts``.
            tokens: SHA-256 digests of the valid tokens in hexadecimal, with their roles, if any.
            access: checks the tokens of issuers, and gives callers their roles. Without tokens and access, requests
                need no token.
        """
        self.hosts = {host.lower() for host in hosts}
        self.origins = {origin.lower() for origin in origins}
        roles = tokens if isinstance(tokens, Mapping) else dict.fromkeys(tokens, ())
        self.tokens = {digest.lower().encode("ascii"): roles[digest] for digest in roles}
        self.access = access

    @property
    def needs_token(self) -> bool:
        """Whether a request needs a token."""
        return bool(self.tokens) or self.access is not None

    def admit(self, headers: Mapping[str, str]) -> Caller:
        """Return the caller of a request. Without an access file, the digest of a token is its principal.

        Raises:
            ProtocolError: if the host, the origin or the token is not permitted, or permits nothing.
        """
        self.check_source(headers)
        return self._authenticate(headers) if self.needs_token else ANONYMOUS

    async def prepare(self, headers: Mapping[str, str]) -> None:
        """Wait for the keys that `admit` needs for the token of a request, if they have to be fetched."""
        token = bearer(headers)
        if self.access is not None and token is not None and self._static(token) is None:
            await self.access.prepare(token)

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

    def _authenticate(self, headers: Mapping[str, str]) -> Caller:
        if (token := bearer(headers)) is None:
            raise ProtocolError("unauthorized")
        if (digest := self._static(token)) is not None:
            roles = self.tokens[digest]
            return Caller(digest.decode()) if self.access is None else self.access.admit_static(digest.decode(), roles)
        if self.access is None:
            raise ProtocolError("unauthorized")
        return self.access.admit(token)

    def _static(self, token: str) -> bytes | None:
        """Return the digest of ``token`` if it is one of the static tokens."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest().encode("ascii")
        # Compares all digests, so that the duration reveals nothing.
        matches = [hmac.compare_digest(valid, digest) for valid in self.tokens]
        return digest if any(matches) else None


def bearer(headers: Mapping[str, str]) -> str | None:
    """Return the bearer token of a request; None if it has none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip(" ") if scheme.lower() == "bearer" else None


def _name(host: str) -> str:
    """Return ``host`` in lower case, without its port."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() and (not name.count(":") or name.endswith("]")) else host.lower()
