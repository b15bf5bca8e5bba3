"""The directory in Redis or Valkey: one hash for each session and task, and one key for each living replica.

Lua scripts change a record only if its owner is the expected one. So at most one replica answers for it.
https://redis.io/docs/latest/develop/programmability/eval-intro/
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
import urllib.parse
from collections.abc import Callable, Collection, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

import redis.asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import OutOfMemoryError

from tmkb.cluster.directory import Fields, Held, OnNews, Place, Unavailable, Write
from tmkb.errors import ProtocolError
from tmkb.transport.probes import Condition

if TYPE_CHECKING:
    from tmkb.transport.engine import Engine

LEASE = 10.0  # seconds without a sign of life after which a replica counts as ended
_BEAT = 3.0  # seconds between signs of life
_MARGIN = 300.0  # seconds that a record is kept longer than the session or task
_RENEWAL = 100.0  # seconds between renewals of all records; less than the margin
_TIMEOUT = 1.0  # seconds for one exchange with the server, without those in which this process was busy
_TICK = 0.05  # seconds
_SOCKET_TIMEOUT = 10.0  # seconds; a limit that includes our own delays, and so is long
_PAUSE = 1.0  # seconds without another attempt after a failure
_GRACE = 5.0  # seconds after a loss of all records, in which other replicas renew their leases and write theirs again
_CONNECTIONS = 32
_LEAVING = " leaving"  # after the address of a replica that is about to end
_FIELDS = 1000  # per call of HSET, because Lua limits the number of arguments

# KEYS: the record. Returns whether this replica is known, then the owner and its address.
_LOCATE = """
local known = redis.call('EXISTS', ARGV[2] .. ARGV[3])
local found = redis.call('HMGET', KEYS[1], 'owner', 'principal')
if not found[1] or found[2] ~= ARGV[1] then return {known} end
if found[1] == ARGV[3] then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
return {known, found[1], redis.call('GET', ARGV[2] .. found[1]) or ''}
"""
_TAKE = """
local found = redis.call('HMGET', KEYS[1], 'owner', 'principal')
if found[1] ~= ARGV[2] or found[2] ~= ARGV[3] then return {} end
redis.call('HSET', KEYS[1], 'owner', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return redis.call('HGETALL', KEYS[1])
"""
# Returns 1; 0 if the record belongs to another replica; -1 if it does not exist, and the changes are not the whole.
_WRITE = f"""
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and owner ~= ARGV[1] then return 0 end
if ARGV[3] == '1' then redis.call('DEL', KEYS[1]) elseif not owner then return -1 end
redis.call('HSET', KEYS[1], 'owner', ARGV[1])
local set = 2 * tonumber(ARGV[4])
for i = 5, 4 + set, {_FIELDS} do
  redis.call('HSET', KEYS[1], unpack(ARGV, i, math.min(i + {_FIELDS - 1}, 4 + set)))
end
for i = 5 + set, #ARGV do redis.call('HDEL', KEYS[1], ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
"""
_FORGET = "if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then redis.call('DEL', KEYS[1]) end"
_RELEASE = "if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then redis.call('HSET', KEYS[1], 'owner', '') end"


class Store:
    """A directory that all replicas with the same server name and Redis database share."""

    keeps_records = True

    def __init__(self, url: str, address: str, runtime: Engine) -> None:
        """Prepare the connection, which is opened on first use.

        Args:
            url: of the Redis server, as ``redis://HOST:PORT/DATABASE``, ``rediss://…`` or ``unix://PATH``.
            address: where this replica listens for the others.
            runtime: the server, whose name is part of all keys.

        Raises:
            ValueError: if the URL is not valid.
        """
        self.id = secrets.token_hex(8)
        self.address = address
        self.prefix = f"tmkb:{runtime.spec['server']['name']}:"
        self.runtime = runtime
        self.client: Any = connect(url)
        self.channel = f"{self.prefix}news:{self.client.connection_pool.connection_kwargs.get('db', 0)}"
        self.resting_until = 0.0  # monotonic; no attempts before
        self.emptied_at = float("-inf")  # monotonic
        self.lost = False  # whether the last call failed
        self.refused = False  # whether Redis responds, but does not write
        self.questions: list[
            tuple[tuple[Any, ...], asyncio.Future[Any]]
        ] = []  # of `_LOCATE`; the result is None if unavailable
        self.asking: asyncio.Task[None] | None = None
        self.announced = False
        self.on_loss: Callable[[], None] = lambda: None
        self.tasks: list[asyncio.Task[None]] = []
        self.publishing: set[asyncio.Task[None]] = set()

    def name(self, id_: str) -> str:
        """Return ``id_``, since the record names the owner."""
        return id_

    async def start(self, on_news: OnNews, on_loss: Callable[[], None], in_use: Callable[[], Iterable[Held]]) -> None:
        """Announce this replica, and go on in the background."""
        self.on_loss = on_loss
        with contextlib.suppress(Unavailable):
            await self._announce()
        self.tasks = [asyncio.create_task(self._beat(in_use)), asyncio.create_task(self._listen(on_news))]

    async def leave(self) -> None:
        """See `Directory`."""
        self.address += _LEAVING
        with contextlib.suppress(Unavailable):
            await self._announce()

    async def stop(self) -> None:
        """Withdraw the announcement and disconnect."""
        await end([*self.tasks, *self.publishing, *([self.asking] if self.asking else [])])
        with contextlib.suppress(Unavailable):
            await self._call(lambda: self.client.delete(self._replica(self.id)))
        with contextlib.suppress(redis.RedisError, OSError, TimeoutError):
            async with asyncio.timeout(_TIMEOUT):  # a cancelled call may hold the lock of the pool
                await self.client.aclose()

    def publish(self, news: bytes) -> None:
        """Send ``news`` to the other replicas; it is lost if Redis is."""
        task = asyncio.get_running_loop().create_task(self._publish(news))
        self.publishing.add(task)
        task.add_done_callback(self.publishing.discard)

    async def locate(self, held: Held, principal: str) -> Place | None:
        """See `Directory`. If Redis was lost, raises `Unavailable` until its replica had time to return."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        arguments = (self._key(held), principal, self._replica(""), self.id, self._lifetime(held))
        self.questions.append((arguments, answer))
        if self.asking is None or self.asking.done():
            self.asking = asyncio.create_task(self._ask())
        if (result := await answer) is None:
            raise Unavailable
        known, *found = result
        if not known:
            await self._announce()
        owner, address = (each.decode() for each in found or (b"", b""))
        may_return = not found or (owner not in ("", self.id) and not address)
        if may_return and time.monotonic() - self.emptied_at < _GRACE:
            raise Unavailable
        return Place(owner, address.removesuffix(_LEAVING), address.endswith(_LEAVING)) if found else None

    async def take(self, held: Held, owner: str, principal: str) -> Fields | None:
        """See `Directory`."""
        arguments = (self.id, owner, principal, self._lifetime(held))
        found = await self._call(lambda: self.client.eval(_TAKE, 1, self._key(held), *arguments))
        return dict(zip(found[::2], found[1::2], strict=True)) if found else None

    async def write(self, writes: Iterable[Write]) -> list[Held]:
        """See `Directory`. If a record or the lease has vanished, all have to be written again (``on_loss``).

        The lease is renewed first, so nobody finds a record of a living replica without one.
        """
        batch = [*writes]
        pipeline = self.client.pipeline(transaction=False)
        self._renew_lease(pipeline)
        for held, changes, whole in batch:
            values = [part for field, value in changes.items() if value is not None for part in (field, value)]
            removed = [field for field, value in changes.items() if value is None]
            head = (self.id, self._lifetime(held), int(whole), len(values) // 2)
            pipeline.eval(_WRITE, 1, self._key(held), *head, *values, *removed)
        known, *results = await self._call(pipeline.execute, writes=True)
        if -1 in results or (known is None and self.announced):
            self._note_loss()
        return [each.held for each, result in zip(batch, results, strict=True) if result == 0]

    async def forget(self, held: Iterable[Held]) -> None:
        """See `Directory`."""
        await self._for_each(_FORGET, held)

    async def release(self, held: Iterable[Held]) -> None:
        """See `Directory`."""
        await self._for_each(_RELEASE, held)

    async def _renew(self, held: Iterable[Held]) -> None:
        """Keep records for another lifetime."""
        pipeline = self.client.pipeline(transaction=False)
        for each in held:
            pipeline.pexpire(self._key(each), self._lifetime(each))
        await self._call(pipeline.execute)

    async def _for_each(self, script: str, held: Iterable[Held]) -> None:
        pipeline = self.client.pipeline(transaction=False)
        for each in held:
            pipeline.eval(script, 1, self._key(each), self.id)
        await self._call(pipeline.execute)

    async def _beat(self, in_use: Callable[[], Iterable[Held]]) -> None:
        renewed_at = time.monotonic()
        while True:
            with contextlib.suppress(Unavailable):
                await self._announce()
                if time.monotonic() - renewed_at > _RENEWAL:
                    await self._renew(in_use())
                    renewed_at = time.monotonic()
            await asyncio.sleep(_PAUSE if self.lost else _BEAT)

    async def _announce(self) -> None:
        """Renew the lease. If it has vanished, so may have all records."""
        known = await self._call(lambda: self._renew_lease(self.client), writes=True)
        if known is None and self.announced:
            self._note_loss()
        self.announced = True

    def _renew_lease(self, client: Any) -> Any:
        return client.set(self._replica(self.id), self.address, px=int(LEASE * 1000), get=True)

    async def _ask(self) -> None:
        """Answer all questions of a moment in one exchange, then those that came meanwhile."""
        while self.questions:
            asked, self.questions = self.questions, []
            pipeline = self.client.pipeline(transaction=False)
            for arguments, _ in asked:
                pipeline.eval(_LOCATE, 1, *arguments)
            try:
                found = await self._call(pipeline.execute)
            except Unavailable:
                found = [None] * len(asked)
            for (_, answer), each in zip(asked, found, strict=True):
                if not answer.done():
                    answer.set_result(each)

    def _note_loss(self) -> None:
        self.emptied_at = time.monotonic()
        self.on_loss()

    async def _publish(self, news: bytes) -> None:
        with contextlib.suppress(Unavailable):
            await self._call(lambda: self.client.publish(self.channel, self.id.encode() + b" " + news))

    async def _listen(self, on_news: OnNews) -> None:
        """Receive news until cancelled."""
        while True:
            with contextlib.suppress(redis.RedisError, OSError, TimeoutError):
                async with self.client.pubsub(ignore_subscribe_messages=True) as subscription:
                    await subscription.subscribe(self.channel)
                    while True:
                        message = await subscription.get_message(timeout=_BEAT)
                        sender, _, news = message["data"].partition(b" ") if message else (b"", b"", b"")
                        if news and sender != self.id.encode():
                            self._handle(news, on_news)
            await asyncio.sleep(_PAUSE)

    def _handle(self, news: bytes, on_news: OnNews) -> None:
        try:
            on_news(news)
        except Exception as error:
            self.runtime.log.write("cluster_failed", error=f"{type(error).__name__}: {error}")
            self.runtime.log.flush()

    async def _call(self, send: Callable[[], Coroutine[Any, Any, Any]], *, writes: bool = False) -> Any:
        """Return the result of an exchange with Redis. Raises `Unavailable` at once after a failure, for a while.

        ``writes``: whether Redis may refuse it while it answers other calls.
        """
        if time.monotonic() < self.resting_until:
            raise Unavailable
        try:
            result = await _in_time(send())
        except (redis.RedisError, OSError, TimeoutError) as error:
            self.resting_until = time.monotonic() + _PAUSE
            refused = isinstance(error, redis.ResponseError)
            if not self.lost or self.refused != refused:
                self.lost, self.refused = True, refused
                self.runtime.conditions["cluster"] = Condition(ProtocolError("cluster_unavailable"))
                self.runtime.log.write("cluster_refuses" if refused else "cluster_lost", reason=_reason(error))
                self.runtime.log.flush()
            raise Unavailable from error
        self.resting_until = 0.0
        if self.lost and (writes or not self.refused):
            self.lost = self.refused = False
            self.runtime.conditions.pop("cluster", None)
            self.runtime.log.write("cluster_found")
            self.runtime.log.flush()
            self._note_loss()
        return result

    def _key(self, held: Held) -> str:
        return f"{self.prefix}{held.kind}:{held.id}"

    def _replica(self, id_: str) -> str:
        return f"{self.prefix}replica:{id_}"

    def _lifetime(self, held: Held) -> int:
        """Return the milliseconds until an unused record expires."""
        limits = self.runtime.spec["server"]["limits"]
        return int((limits["session_seconds" if held.kind == "session" else "task_seconds"] + _MARGIN) * 1000)


async def end(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel ``tasks`` until they have ended, because redis-py can swallow a cancellation while it connects."""
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=_TIMEOUT / 10)
        for task in pending:
            if task.done() and not task.cancelled():
                task.exception()  # nobody else reads it


async def _in_time(exchange: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of ``exchange``. Raises TimeoutError after `_TIMEOUT`.

    Ticks are counted, since a busy event loop delays each tick and each step of the exchange alike.
    """
    task = asyncio.create_task(exchange)
    try:
        for _ in range(round(_TIMEOUT / _TICK)):
            if (await asyncio.wait([task], timeout=_TICK))[0]:
                return task.result()
    finally:
        await end([task])  # or it goes on with a connection that is closed meanwhile
    raise TimeoutError


def _reason(error: Exception) -> str:
    """Return why a call failed, without the script that redis-py and Redis add to messages."""
    if isinstance(error, OutOfMemoryError):
        return "its memory is full (maxmemory)"
    message = str(error).rpartition(" caused error: ")[2].partition(" script: ")[0]
    return message.strip("(),'\" .") or type(error).__name__


def connect(url: str) -> Any:
    """Return a client for the Redis server at ``url``. It never retries. Raises ValueError for a bad URL."""
    pool = redis.BlockingConnectionPool.from_url(
        url,
        max_connections=_CONNECTIONS,
        timeout=_SOCKET_TIMEOUT,
        socket_timeout=_SOCKET_TIMEOUT,
        socket_connect_timeout=_SOCKET_TIMEOUT,
        retry=Retry(NoBackoff(), 0),
    )
    try:
        pool.connection_class(**pool.connection_kwargs)
    except TypeError as error:
        names = ", ".join(name for name, _ in urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
        raise ValueError(f"one of the parameters is unknown: {names}") from error
    return redis.Redis.from_pool(pool)


def reach(url: str) -> None:
    """Connect once, before an event loop runs. Raises ValueError for a bad URL, OSError if Redis is not reachable."""
    client = connect(url)

    async def ping() -> None:
        async with client, asyncio.timeout(_TIMEOUT * 3):
            await client.ping()

    try:
        asyncio.run(ping())
    except redis.RedisError as error:
        raise OSError(str(error) or type(error).__name__) from error
