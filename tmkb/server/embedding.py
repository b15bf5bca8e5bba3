"""Connections and queries for a program that embeds a server: bytes in, bytes out, no threads and no sockets."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tmkb.errors import InvalidArguments
from tmkb.protocol import arguments as argument_checks
from tmkb.protocol.caller import Caller
from tmkb.protocol.effects import Send, Sent
from tmkb.server.log import StandardLog

if TYPE_CHECKING:
    from tmkb.protocol import connection as protocol
    from tmkb.server.server import Server

_QUERIES = ("knowledge.query", "knowledge.advise")  # operations that answer a query


class Embedding:
    """One runtime for all connections of an embedded server, and the lock that serializes their calls."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.lock = threading.RLock()
        self.runtime = server.runtime(StandardLog(server.spec["server"]["log"]))
        self.connections: dict[protocol.Connection, Connection] = {}
        self.knowledge: Any = None

    def connect(self, principal: str, on_output: Callable[[], None] | None) -> Connection:
        """Return a new connection."""
        with self.lock:
            state = self.runtime.connect(caller=Caller(principal))
            connection = Connection(self, state, on_output)
            self.connections[state] = connection
        return connection

    def run(self, caller: Connection, act: Callable[[], list[Sent]]) -> list[bytes]:
        """Run ``act`` and return the messages for ``caller``. Other connections return theirs from `work`."""
        with self.lock:
            woken = []
            for sent in act():
                connection = self.connections.get(sent.connection) if isinstance(sent, Send) else None
                if connection is None or not isinstance(sent, Send):
                    continue
                if connection is not caller and not connection.waiting:
                    woken.append(connection)
                connection.waiting.append(sent.message)
            messages, caller.waiting = caller.waiting, []
        for connection in woken:
            if connection.on_output is not None:
                connection.on_output()
        return messages

    def query(self, arguments: Mapping[str, Any], limit: int | None) -> dict[str, Any]:
        """Answer a query. Raises InvalidArguments and LookupError."""
        spec = self.server.spec
        tool = next((tool for tool in spec["tools"].values() if tool.get("provider") in _QUERIES), None)
        if tool is None:
            raise LookupError(f"no tool of the server {spec['server']['name']} has a provider of {', '.join(_QUERIES)}")
        with self.lock:
            errors = spec["revisions"][spec["server"]["revisions"][0]]["errors"]
            checked, failures = argument_checks.check(tool, {**arguments}, spec, errors)
            if failures:
                raise InvalidArguments([failure.sentence for failure in failures])
            provider, _, name = tool["provider"].partition(".")
            if self.knowledge is None:
                self.knowledge = self.server.provider(provider)
            query = self.knowledge.operation(name, tool)
            answer: dict[str, Any] = json.loads(query(**checked, limit=limit).content[0]["text"])
        return answer


class Connection:
    """One client of an embedded server.

    Pass each message of the client to `receive`, and send the messages that it returns. While `due` is not None,
    operations are running: call `work` after that many seconds, and send the messages that it returns.

    Thread-safety: all methods may be called from any thread; a lock of the server serializes them.
    """

    def __init__(
        self, embedding: Embedding, state: protocol.Connection, on_output: Callable[[], None] | None = None
    ) -> None:
        """Use `Server.connect` instead."""
        self._embedding = embedding
        self._state = state
        self.on_output = on_output
        self.waiting: list[bytes] = []  # messages from calls of other connections

    def receive(self, message: bytes) -> list[bytes]:
        """Handle one JSON-RPC message and return the messages to send, in order, without newlines.

        An invalid message gets an error response; nothing is raised.
        """
        runtime = self._embedding.runtime
        if len(message) > runtime.spec["server"]["limits"]["message_bytes"]:
            return self._embedding.run(self, lambda: runtime.handle_too_large(self._state))
        return self._embedding.run(self, lambda: runtime.handle(self._state, message))

    def due(self) -> float | None:
        """Return the seconds until the next call of `work`; None if no operation is running."""
        with self._embedding.lock:
            return 0.0 if self.waiting else self._embedding.runtime.due()

    def work(self) -> list[bytes]:
        """Run one step of every operation of the server that is due; return the messages to send."""
        return self._embedding.run(self, self._embedding.runtime.work)

    def close(self) -> list[bytes]:
        """Stop the connection's operations, end it, and return the last messages to send."""
        runtime = self._embedding.runtime

        def end() -> list[Sent]:
            sent = runtime.end(self._state)
            runtime.abandon(self._state)
            return sent

        messages = self._embedding.run(self, end)
        with self._embedding.lock:
            self._embedding.connections.pop(self._state, None)
        return messages
