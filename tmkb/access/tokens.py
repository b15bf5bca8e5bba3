"""Check access tokens: JSON Web Tokens of the issuers in the access file.

Specification: RFC 7519, RFC 8725, RFC 9068; the chapter Authorization of MCP.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jwt

from tmkb.access import policy
from tmkb.access.keys import Keys
from tmkb.access.policy import Identity
from tmkb.errors import ProtocolError
from tmkb.schema.model import Limits

_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_ALGORITHMS = ("RS256", "ES256", "EdDSA")
_LEEWAY = 30  # seconds
_MAX_PRINCIPAL = 255  # characters (OpenID Connect Core, section 2)


class Issuer(NamedTuple):
    """An entry of the access file, and the keys of the issuer."""

    entry: Mapping[str, Any]
    keys: Keys


class _Parts(NamedTuple):
    """What a token says before its signature is checked."""

    issuer: Issuer
    algorithm: str
    key_id: str | None
    type: str


class Tokens:
    """Checks the tokens of all issuers."""

    def __init__(self, source: policy.Policy, limits: Limits, report: Callable[..., None]) -> None:
        """``report``: writes the log line with an id and fields."""
        self.policy = source
        self.limits = limits
        self.issuers = {
            entry["issuer"]: Issuer(entry, Keys(entry["issuer"], entry.get("jwks"), limits, report))
            for entry in source.issuers
        }

    @property
    def generation(self) -> int:
        """A number that changes with the keys of any issuer."""
        return sum(issuer.keys.generation for issuer in self.issuers.values())

    def start(self) -> None:
        """Start to fetch the keys of all issuers. Needs a running event loop."""
        for issuer in self.issuers.values():
            issuer.keys.start()

    def stop(self) -> None:
        """Fetch no more keys."""
        for issuer in self.issuers.values():
            issuer.keys.stop()

    def inherit(self, before: Tokens) -> None:
        """Begin with the keys of ``before``."""
        for name in self.issuers.keys() & before.issuers.keys():
            self.issuers[name].keys.inherit(before.issuers[name].keys)

    async def prepare(self, token: str) -> None:
        """Fetch the keys of the issuer if ``token`` names an unknown one, and wait for them."""
        try:
            parts = self._read(token)
        except ProtocolError:
            return
        keys = parts.issuer.keys
        if not keys.all or (parts.key_id is not None and not keys.find(parts.key_id, parts.algorithm)):
            await keys.refresh()

    def check(self, token: str) -> tuple[Identity, float]:
        """Return whom ``token`` is for, and the Unix time at which it expires.

        Raises:
            ProtocolError: if it is not valid.
        """
        parts = self._read(token)
        entry, keys = parts.issuer.entry, parts.issuer.keys
        candidates = keys.find(parts.key_id, parts.algorithm)
        if not candidates:
            raise ProtocolError("keys_unavailable") if keys.failing or not keys.all else ProtocolError("token_key")
        claims = self._verify(token, parts, [key.public for key in candidates])
        principal = policy.claim(claims, entry.get("principal", "sub"))
        if not isinstance(principal, str) or not 0 < len(principal) <= _MAX_PRINCIPAL or not principal.isprintable():
            raise ProtocolError("token_claims")
        scopes = policy.claim(claims, entry.get("scopes", "scope"))
        listed = scopes.split(" ") if isinstance(scopes, str) else scopes if isinstance(scopes, list) else []
        named = frozenset(each for each in listed if isinstance(each, str) and each)
        # An issuer is a URL without spaces, so no two pairs give the same principal, and no digest equals one.
        identity = Identity(f"{entry['issuer']} {principal}", entry["issuer"], named, claims)
        return identity, int(claims["exp"]) + _leeway(entry)

    def _read(self, token: str) -> _Parts:
        """Read which issuer, algorithm and key a token names. Raises ProtocolError if they cannot be right."""
        if len(token) > self.limits["token_bytes"] or not _COMPACT.fullmatch(token):
            raise ProtocolError("token_malformed")
        try:
            header = jwt.get_unverified_header(token)
            claims = jwt.decode(token, options={"verify_signature": False})
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise ProtocolError("token_malformed") from error
        issuer = self.issuers.get(named) if isinstance(named := claims.get("iss"), str) else None
        if issuer is None:
            raise ProtocolError("token_issuer")
        algorithm, type_ = header.get("alg"), header.get("typ")
        if algorithm not in issuer.entry.get("algorithms", _ALGORITHMS):
            raise ProtocolError("token_algorithm")
        types = issuer.entry.get("types")
        if types is not None and _type(type_) not in map(_type, types):
            raise ProtocolError("token_type")
        return _Parts(issuer, str(algorithm), header.get("kid"), str(type_))

    def _verify(self, token: str, parts: _Parts, candidates: list[Any]) -> dict[str, Any]:
        """Return the claims of a token that one of the keys ``candidates`` verifies."""
        entry = parts.issuer.entry
        for key in candidates:
            try:
                claims: dict[str, Any] = jwt.decode(
                    token,
                    key,
                    algorithms=[parts.algorithm],
                    audience=entry.get("audience", [self.policy.resource]),
                    issuer=entry["issuer"],
                    leeway=_leeway(entry),
                    options={"require": ["exp", "iss", "aud"]},
                )
            except (jwt.InvalidSignatureError, jwt.InvalidKeyError):
                continue
            except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as error:
                raise _refusal(error) from error
            return claims
        raise ProtocolError("token_signature")


def _refusal(error: Exception) -> ProtocolError:
    """Return the error for a token with a valid signature whose claims raised ``error``."""
    match error:
        case jwt.ExpiredSignatureError():
            return ProtocolError("token_expired")
        case jwt.ImmatureSignatureError():
            return ProtocolError("token_early")
        case jwt.InvalidAudienceError():
            return ProtocolError("token_audience")
        case _:
            return ProtocolError("token_claims")


def _leeway(entry: Mapping[str, Any]) -> int:
    return int(entry.get("leeway_seconds", _LEEWAY))


def _type(value: object) -> str:
    """Return a media type in lower case, without `application/` (RFC 7515, section 4.1.9)."""
    return str(value).lower().removeprefix("application/")
