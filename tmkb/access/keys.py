"""The public keys of an issuer. A thread fetches them, so that no request waits for the network in the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import cryptography  # noqa: F401 # without it, `jwt` lacks all algorithms that are permitted
from jwt import PyJWK

from tmkb.access import fetching
from tmkb.schema.model import Limits

_LEAST_BITS = 2048  # of an RSA key (RFC 7518, section 3.3)
_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}  # start of an algorithm → type of its keys


class Key:
    """A public key that verifies signatures."""

    def __init__(self, jwk: Mapping[str, Any]) -> None:
        """Read a JWK. Raises ValueError if it is not valid, or not for signatures."""
        if jwk.get("kty") not in _TYPES.values() or "d" in jwk:  # symmetric, unknown or private
            raise ValueError("not a public key")
        operations = jwk.get("key_ops", ["verify"])
        if jwk.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
            raise ValueError("not for signatures")
        self.id = jwk.get("kid")
        self.type, self.curve, self.algorithm = jwk["kty"], jwk.get("crv"), jwk.get("alg")
        self.jwk = json.dumps(jwk, sort_keys=True)
        try:
            self.public: Any = PyJWK.from_dict({**jwk}).key
        except Exception as error:  # of many types
            raise ValueError("not valid") from error
        if self.type == "RSA" and self.public.key_size < _LEAST_BITS:
            raise ValueError("too short")

    def fits(self, algorithm: str) -> bool:
        """Return whether the key is for ``algorithm``."""
        if self.algorithm not in (None, algorithm) or _TYPES.get(algorithm[:2]) != self.type:
            return False
        return self.curve == _CURVES.get(algorithm, self.curve)


class Keys:
    """The keys of one issuer. They stay valid while it cannot be reached."""

    def __init__(self, issuer: str, jwks: str | None, limits: Limits, report: Callable[..., None]) -> None:
        """Create an empty set.

        Args:
            issuer: its identifier.
            jwks: the URL of the keys; None to look it up in the metadata.
            limits: those of the server.
            report: writes the log line with an id and fields.
        """
        self.issuer = issuer
        self.jwks = jwks
        self.limits = limits
        self.report = report
        self.all: Sequence[Key] = ()
        self.generation = 0  # changes with the keys
        self.failing = False  # whether the last one has failed
        self._stopped = False
        self._wanted = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None  # of the running thread
        self._fetched: asyncio.Future[None] | None = None  # done after the fetch that requests wait for
        self._next = 0.0  # earliest time of the next fetch that a request causes

    @property
    def loaded(self) -> bool:
        """Whether a fetch has succeeded."""
        return bool(self.all)

    def find(self, id_: str | None, algorithm: str) -> list[Key]:
        """Return the keys with this id for ``algorithm``; without an id, the only one that fits, or none."""
        fitting = [key for key in self.all if key.fits(algorithm)]
        if id_ is None:
            return fitting if len(fitting) == 1 else []
        return [key for key in fitting if key.id == id_]

    def start(self) -> None:
        """Fetch the keys now and on a schedule, in a thread. The event loop of the caller has to keep running."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._wanted = threading.Event()
            self._fetched = loop.create_future()
            threading.Thread(target=self._run, args=(loop, self._wanted), daemon=True).start()

    def stop(self) -> None:
        """Fetch no more."""
        self._stopped = True
        self._wanted.set()

    def inherit(self, before: Keys) -> None:
        """Begin with the keys of ``before``, if they are of the same issuer. It could be unreachable now."""
        if (self.issuer, self.jwks) == (before.issuer, before.jwks):
            self.all = before.all

    async def refresh(self) -> None:
        """Fetch the keys and wait for the result; do nothing if the last fetch for a request was a moment ago."""
        self.start()
        if self._fetched is None:
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + self.limits["keys_retry_seconds"]
            self._fetched = asyncio.get_running_loop().create_future()
            self._wanted.set()
        try:
            await asyncio.wait_for(asyncio.shield(self._fetched), self.limits["keys_timeout_seconds"] + 1)
        except TimeoutError:  # the name of its host is still looked up, for which there is no timeout
            self._receive([], "it took too long")

    def _run(self, loop: asyncio.AbstractEventLoop, wanted: threading.Event) -> None:
        """Fetch until `stop`, or until the event loop is closed."""
        while not (loop.is_closed() or self._stopped):
            wanted.clear()
            found, reason = self._fetch()
            with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
                loop.call_soon_threadsafe(self._receive, found, reason)
            wanted.wait(self.limits["keys_retry_seconds" if reason else "keys_seconds"])

    def _fetch(self) -> tuple[list[Key], str]:
        """Return the keys, or the reason why there are none."""
        try:
            found = [*_usable(fetching.keys(self.issuer, self.jwks, self.limits))]
        except fetching.FetchError as error:
            return [], str(error)
        except Exception as error:  # a bug, which must not end the thread
            return [], f"{type(error).__name__}: {error}"
        return found, "" if found else "no key is for signatures"

    def _receive(self, found: Sequence[Key], reason: str) -> None:
        """Use the keys of a fetch, in the event loop. ``reason``: why it has failed; else empty."""
        if reason and not self.failing:
            self.report("keys_not_fetched", issuer=self.issuer, reason=reason)
        elif not reason and (self.failing or not self.loaded):
            self.report("keys_fetched", issuer=self.issuer, count=len(found))
        self.failing = bool(reason)
        if found:
            if {key.jwk for key in found} != {key.jwk for key in self.all}:
                self.generation += 1
            self.all = found
        fetched, self._fetched = self._fetched, None
        if fetched is not None and not fetched.done():
            fetched.set_result(None)


def _usable(documents: Sequence[Any]) -> Iterator[Key]:
    for jwk in documents:
        with contextlib.suppress(ValueError):
            if isinstance(jwk, dict):
                yield Key(jwk)
