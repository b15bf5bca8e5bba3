"""Connections of an engine to PostgreSQL that are reset instead of closed.

Each new connection costs the server a process. `DISCARD ALL` makes the session of an old one like a new session:
without settings, temporary tables, locks and prepared statements. What the client knows about it is forgotten, too.
"""

from __future__ import annotations

import os
from typing import Any

from sqlalchemy import Engine, event


class Connections:
    """The connections of one engine that are open and not in use."""

    def __init__(self, engine: Engine) -> None:
        self.kept = False  # whether connections that are closed from now on are kept; see `keep`
        self._idle: dict[int, list[Any]] = {}  # of libpq, by process: a fork must not use those of its parent
        event.listen(engine, "do_connect", self._reused)
        setattr(engine.dialect, "do_close", self._close)  # noqa: B010  # there is no event for it

    def keep(self) -> None:
        """Keep connections from now on. Sessions that are older can have other defaults, which a migration changed."""
        self.kept = True

    def processes(self) -> list[int]:
        """Return the ids of the server's processes behind the connections."""
        return [each.backend_pid for each in self._idle.get(os.getpid(), ())]

    def close(self) -> None:
        """Close all connections of this process."""
        self.kept = False
        for each in self._idle.pop(os.getpid(), ()):
            each.finish()

    def _reused(self, *_: object) -> Any:
        """Return a connection that is like a new one; None if there is none, and a new one has to be opened."""
        import psycopg

        idle = self._idle.get(os.getpid())
        return psycopg.Connection(idle.pop()) if idle else None

    def _close(self, connection: Any) -> None:
        import psycopg

        if not self.kept or connection.closed:
            connection.close()
            return
        try:
            connection.rollback()
            connection.autocommit = True
            connection.execute("DISCARD ALL")
        except psycopg.Error:
            connection.close()
            return
        self._idle.setdefault(os.getpid(), []).append(connection.pgconn)
        del connection.pgconn  # so nobody else can use it
