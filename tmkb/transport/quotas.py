"""Quotas: how much a principal may use the server, and how often an address may fail to authenticate.

All state is in the memory of the process, for the principals and addresses that were active last.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from tmkb.errors import ProtocolError

if TYPE_CHECKING:
    from tmkb.schema.model import Limits

_MAX_STORED = 10_000  # principals, addresses, and tokens
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Bucket:
    """A token bucket: ``rate`` tokens per second flow in, and it holds up to ``burst``. It is full at the start."""

    __slots__ = ("tokens", "updated")

    def __init__(self, burst: float, now: float) -> None:
        self.tokens = burst
        self.updated = now

    def wait(self, count: float, rate: float, burst: float, now: float) -> float:
        """Return the seconds until ``count`` tokens are available; 0 if they are.

        Args:
            count: at most ``burst``, or it is never available.
            rate: tokens per second.
            burst: tokens.
            now: seconds of a clock. A step back of the clock adds no tokens.
        """
        tokens = self.tokens + (now - self.updated) * rate if now > self.updated else self.tokens
        self.tokens = burst if tokens > burst else tokens  # faster than min()
        self.updated = now
        return 0.0 if count <= self.tokens else (count - self.tokens) / rate

    def spend(self, count: float) -> None:
        """Remove ``count`` tokens. With fewer in it, the bucket owes the others."""
        self.tokens -= count


class Account:
    """What one principal has used of its quotas."""

    __slots__ = ("bytes", "clock", "limits", "requests", "running")

    def __init__(self, limits: Callable[[], Limits], clock: Callable[[], float]) -> None:
        now = clock()
        self.limits = limits
        self.clock = clock
        self.requests = Bucket(limits()["principal_burst"], now)
        self.bytes = Bucket(limits()["principal_byte_burst"], now)
        self.running = 0  # requests

    def begin(self) -> None:
        """Count a request that runs until `end`. Raises ProtocolError if the principal has too many."""
        limits = self.limits()
        if self.running >= limits["principal_requests"]:
            raise ProtocolError(
                "too_many_requests_at_once", limit=limits["principal_requests"], retryAfter=limits["busy_seconds"]
            )
        self.running += 1

    def end(self) -> None:
        """Record that a request does not run any more."""
        self.running -= 1

    def add(self, messages: int, size: int = 0) -> None:
        """Count ``messages`` of ``size`` bytes. Raises ProtocolError, and counts nothing, if they exceed a quota."""
        limits, now = self.limits(), self.clock()
        rate, burst = limits["principal_rate"], limits["principal_burst"]
        if messages > burst:
            raise ProtocolError("batch_too_large", limit=burst)
        if wait := self.requests.wait(messages, rate, burst, now):
            raise ProtocolError("too_many_requests", limit=rate, retryAfter=math.ceil(wait))
        byte_rate, byte_burst = limits["principal_byte_rate"], limits["principal_byte_burst"]
        if size > byte_burst:
            raise ProtocolError("message_too_large", limit=byte_burst)
        if wait := self.bytes.wait(size, byte_rate, byte_burst, now):
            raise ProtocolError("too_many_bytes", limit=byte_rate, retryAfter=math.ceil(wait))
        self.requests.spend(messages)
        self.bytes.spend(size)

    def add_sent(self, size: int) -> None:
        """Count ``size`` bytes of a response. Beyond the quota, the next request has to wait."""
        self.bytes.spend(size)


class Accounts:
    """The accounts of the principals."""

    def __init__(self, limits: Callable[[], Limits], clock: Callable[[], float] = time.monotonic) -> None:
        """Start without accounts. ``limits`` returns the current limits, ``clock`` seconds."""
        self.limits = limits
        self.clock = clock
        self.stored: OrderedDict[str, Account] = OrderedDict()

    def of(self, principal: str) -> Account:
        """Return the account of ``principal``."""
        account = self.stored.get(principal)
        if account is None:
            account = Account(self.limits, self.clock)
        _store(self.stored, principal, account)
        return account


class Attempts:
    """Failed attempts to authenticate, by address.

    An address with too many of them is rejected before its token is checked. A token that was accepted before is
    always checked, so that one client does not lock out the others behind the same proxy.
    """

    def __init__(self, limits: Callable[[], Limits], clock: Callable[[], float] = time.monotonic) -> None:
        """Start without failures. ``limits`` returns the current limits, ``clock`` seconds."""
        self.limits = limits
        self.clock = clock
        self.failures: OrderedDict[str, Bucket] = OrderedDict()
        self.accepted: OrderedDict[bytes, None] = OrderedDict()  # digests of tokens

    def check(self, address: str, token: str) -> None:
        """Raise ProtocolError if ``address`` has failed too often, unless ``token`` was accepted before."""
        bucket = self.failures.get(address)
        if bucket is None or not token:
            return
        limits = self.limits()
        wait = bucket.wait(1, limits["failure_rate"], limits["failure_burst"], self.clock())
        if wait and _digest(token) not in self.accepted:
            raise ProtocolError("too_many_failures", retryAfter=math.ceil(wait))

    def accept(self, token: str) -> None:
        """Record that ``token`` is valid."""
        if token:
            _store(self.accepted, _digest(token), None)

    def fail(self, address: str, token: str) -> None:
        """Record that ``token`` of ``address`` is not valid. A request without a token is no attempt."""
        if not token:
            return
        self.accepted.pop(_digest(token), None)
        bucket = self.failures.get(address) or Bucket(self.limits()["failure_burst"], self.clock())
        bucket.spend(1)
        _store(self.failures, address, bucket)


def _store(stored: OrderedDict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Store ``value`` as the most recent one, and drop the least recent one if there are too many."""
    stored[key] = value
    stored.move_to_end(key)
    if len(stored) > _MAX_STORED:
        stored.popitem(last=False)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
