"""Decide who a caller is and what it may use: the access file, applied to tokens."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tmkb.access import challenges
from tmkb.access.policy import Identity, Policy
from tmkb.errors import ProtocolError
from tmkb.protocol.caller import Caller

if TYPE_CHECKING:
    from tmkb.access.tokens import Tokens
    from tmkb.schema.model import Limits

_MAX_CHECKED = 4096  # tokens whose caller is remembered


class Access:
    """Admits callers. Each token is checked once: a request needs its caller several times."""

    def __init__(self, policy: Policy, limits: Limits, report: Callable[..., None]) -> None:
        """Create the decisions for ``policy``.

        Args:
            policy: the access file.
            limits: those of the server.
            report: writes the log line with an id and fields.

        Raises:
            ImportError: if tokens of issuers cannot be checked without another library.
        """
        self.policy = policy
        self.metadata = challenges.metadata(policy)
        self.metadata_paths = challenges.metadata_paths(policy)
        self._tokens: Tokens | None = None
        if policy.issuers:
            from tmkb.access.tokens import Tokens

            self._tokens = Tokens(policy, limits, report)
        self._checked: dict[bytes, Caller] = {}
        self._generation = 0

    @property
    def audits(self) -> bool:
        """Whether there is an audit log."""
        return "audit" in self.policy.value

    def start(self) -> None:
        """Start to fetch the keys of the issuers. Needs a running event loop."""
        if self._tokens is not None:
            self._tokens.start()

    def replace(self, before: Access) -> None:
        """Take the place of ``before``: use the keys that it has fetched, and stop it."""
        if before._tokens is not None:
            before._tokens.stop()
        if self._tokens is not None and before._tokens is not None:
            self._tokens.inherit(before._tokens)

    async def prepare(self, token: str) -> None:
        """Wait until the key that ``token`` names is known, or cannot be had."""
        if self._tokens is not None and self._remembered(_digest(token)) is None:
            await self._tokens.prepare(token)

    def admit(self, token: str) -> Caller:
        """Return the caller with a token of an issuer.

        Raises:
            ProtocolError: if the token is not valid, or the caller has no role.
        """
        if self._tokens is None:
            raise ProtocolError("token_malformed")
        digest = _digest(token)
        if (caller := self._remembered(digest)) is not None:
            return caller
        identity, expires = self._tokens.check(token)
        caller = self.policy.caller(identity, expires)
        if len(self._checked) >= _MAX_CHECKED:
            del self._checked[next(iter(self._checked))]
        self._checked[digest] = caller
        return caller

    def admit_static(self, digest: str, roles: Sequence[str]) -> Caller:
        """Return the caller with a token of the file of `--auth-tokens`. Raises ProtocolError if it has no role."""
        return self.policy.caller(Identity(digest, roles=tuple(roles)))

    def challenge(self, status: int, sentence: str, scopes: object, with_token: bool) -> str:
        """Return the value of `WWW-Authenticate`, see `challenges.challenge`. ``scopes``: None for the first ones."""
        needed = [*map(str, scopes)] if isinstance(scopes, list) else self.policy.first_scopes
        return challenges.challenge(self.policy, status, sentence, needed, with_token)

    def _remembered(self, digest: bytes) -> Caller | None:
        """Return the caller of a token that was checked with the current keys, and is still valid."""
        assert self._tokens is not None
        if self._generation != self._tokens.generation:
            self._generation = self._tokens.generation
            self._checked.clear()
        caller = self._checked.get(digest)
        return caller if caller is not None and time.time() < (caller.expires or 0.0) else None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
