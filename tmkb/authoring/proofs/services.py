"""The servers that patterns and cases name: one PostgreSQL cluster and one Redis server for a whole run.

`Services` starts them, with their data and their sockets in a temporary folder and without a port. The other classes
are for the stage, which connects to them: `Database` with PostgreSQL, `Keys` with Redis. A server is the child of a
process that runs this file. That process stops the server and deletes its data as soon as its standard input ends, so
neither outlives a run that is killed.

Two ordinary roles exist in PostgreSQL. ``owner`` owns the tables. ``app``, as which the application connects, may only
select, insert, update and delete, so row-level security applies to it. Neither is a superuser or has BYPASSRLS.
"""

from __future__ import annotations

import glob
import importlib.util
import itertools
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, NamedTuple

Addresses = Mapping[str, str]  # service → where its socket is: a folder for postgresql, a file for redis

REDIS_DATABASES = 1024
_UNPRIVILEGED = "postgres", "nobody"  # PostgreSQL refuses to be run by root
_SECONDS = 30.0  # until a server must be ready
_SPACE = 2 << 30  # bytes that must be free to keep the data in memory
_CONFIGURATION = {
    "listen_addresses": "",
    "autovacuum": "off",  # connects to databases, which then cannot be copied
    "deadlock_timeout": "100ms",
    "fsync": "off",
    "jit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "max_wal_senders": "0",
    "synchronous_commit": "off",
    "wal_level": "minimal",
}
# What every new database has, because it is copied from this one.
_TEMPLATE = """
    CREATE ROLE owner LOGIN;
    CREATE ROLE app LOGIN;
    REVOKE ALL ON SCHEMA public FROM PUBLIC;
    GRANT USAGE ON SCHEMA public TO PUBLIC;
    ALTER SCHEMA public OWNER TO owner;
    ALTER DEFAULT PRIVILEGES FOR ROLE owner GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO app;
    ALTER DEFAULT PRIVILEGES FOR ROLE owner GRANT USAGE ON SEQUENCES TO app;
"""


class UnavailableError(Exception):
    """A service cannot be started; the message says what is needed."""


@dataclass(slots=True)
class _Server:
    """A running server, its address, and its folder."""

    process: subprocess.Popen[bytes]
    address: str
    folder: str

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Services:
    """The servers of one run. Each is started when the first pattern needs it, and stopped at the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: dict[str, _Server | UnavailableError] = {}

    def __enter__(self) -> Services:
        return self

    def __exit__(self, _type: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        for server in self._started.values():
            if isinstance(server, _Server):
                server.stop()
        self._started.clear()

    def addresses(self, names: Iterable[str]) -> Addresses:
        """Return the addresses of these services, which are started if necessary.

        Raises:
            UnavailableError: a program or a Python package is not installed, or a server does not start.
        """
        found = {}
        with self._lock:
            for name in names:
                program_ = "redis" if name == "celery" else name  # which is the broker; the stage forks the worker
                if program_ not in self._started:
                    self._started[program_] = _started(program_)
                server = self._started[program_]
                if isinstance(server, UnavailableError):
                    raise server
                found[name] = server.address
        return found


def program(name: str) -> str | None:
    """Return the path of redis-server, or the folder of PostgreSQL's programs; None if it is not installed.

    The variable POSTGRESQL_PROGRAMS names that folder; an empty one stands for a machine without PostgreSQL.
    """
    if name == "redis":
        return shutil.which("redis-server")
    if (named := os.environ.get("POSTGRESQL_PROGRAMS")) is not None:
        return named or None
    # Debian does not put initdb into PATH.
    found = shutil.which("initdb") or max(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=_version, default=None)
    return found and os.path.dirname(os.path.realpath(found))


def _version(path: str) -> list[int]:
    return [int(part) for part in path.split("/")[4].split(".") if part.isdigit()]


def _started(name: str) -> _Server | UnavailableError:
    start, package = _STARTS[name]
    if (found := program(name)) is None:
        return UnavailableError(f"needs {name}, which is not installed")
    if importlib.util.find_spec(package) is None:
        return UnavailableError(f"needs the Python package {package}, which is not installed")
    memory = "/dev/shm"
    in_memory = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _SPACE
    folder = tempfile.mkdtemp(prefix="tmkb-", dir=memory if in_memory else None)
    try:
        return start(found, folder)
    except (OSError, subprocess.SubprocessError, UnavailableError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        shutil.rmtree(folder, ignore_errors=True)
        return UnavailableError(f"needs {name}, which does not start: {reason}")


def _start_postgresql(programs: str, folder: str) -> _Server:
    log = os.path.join(folder, "log")
    account = _account()
    options: dict[str, Any] = {"cwd": folder, "env": {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}}
    if account is not None:
        os.chown(folder, *account)
        options |= {"user": account[0], "group": account[1], "extra_groups": []}
    with open(log, "ab") as output:
        options |= {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
        initdb = os.path.join(programs, "initdb")
        command = [initdb, "-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]
        if subprocess.run([*command, "--wal-segsize=1"], check=False, timeout=_SECONDS, **options).returncode:
            raise UnavailableError(_last_line(log))
        settings = [text for key, value in _CONFIGURATION.items() for text in ("-c", f"{key}={value}")]
        command = [os.path.join(programs, "postgres"), "-D", "data", "-k", folder, *settings]
        server = _Server(_guarded(command, folder, output, account), folder, folder)
    try:
        _wait(server, log, lambda: os.path.exists(os.path.join(folder, ".s.PGSQL.5432")) and _furnished(folder))
    except BaseException:
        server.stop()
        raise
    return server


def _furnished(folder: str) -> bool:
    """Set up the template of all databases; return False if the server does not accept connections yet."""
    import psycopg

    try:
        with psycopg.connect(host=folder, user="postgres", dbname="template1", autocommit=True) as connection:
            connection.execute(_TEMPLATE)
    except psycopg.OperationalError:
        return False
    return True


def _start_redis(server_program: str, folder: str) -> _Server:
    log, address = os.path.join(folder, "log"), os.path.join(folder, "redis.sock")
    command = [server_program, "--port", "0", "--unixsocket", address, "--save", "", "--appendonly", "no"]
    with open(log, "ab") as output:
        process = _guarded([*command, "--databases", str(REDIS_DATABASES)], folder, output, None)
    server = _Server(process, address, folder)
    try:
        _wait(server, log, lambda: os.path.exists(address))
    except BaseException:
        server.stop()
        raise
    return server


_STARTS: dict[str, tuple[Callable[[str, str], _Server], str]] = {  # how it is started, and its Python package
    "postgresql": (_start_postgresql, "psycopg"),
    "redis": (_start_redis, "redis"),
}


def _guarded(
    command: list[str], folder: str, output: IO[bytes], account: tuple[int, int] | None
) -> subprocess.Popen[bytes]:
    """Start `main` with ``command``, as the user and the group in ``account``."""
    program = [sys.executable, "-I", __file__, *map(str, account or ("", "")), *command]
    return subprocess.Popen(program, cwd=folder, stdin=subprocess.PIPE, stdout=output, stderr=output)


def main() -> None:
    """Run a server until it ends or the standard input does; then stop it and delete the current folder."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C also reaches this process
    user, group, *command = sys.argv[1:]
    options: dict[str, Any] = {"user": int(user), "group": int(group), "extra_groups": []} if user else {}
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment, **options)
    while select.select([0], [], [], 0.1)[0] == [] and server.poll() is None:
        pass
    if server.poll() is not None:
        sys.exit(1)
    server.send_signal(signal.SIGINT)  # ends PostgreSQL without waiting for its clients
    try:
        server.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
    shutil.rmtree(os.getcwd(), ignore_errors=True)


def _account() -> tuple[int, int] | None:
    """Return the user and the group that PostgreSQL runs as when this process is root's."""
    if not hasattr(os, "geteuid") or os.geteuid():
        return None
    import pwd

    known = {each.pw_name: (each.pw_uid, each.pw_gid) for each in pwd.getpwall()}
    return next((known[name] for name in _UNPRIVILEGED if name in known), None)


def _wait(server: _Server, log: str, is_ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not is_ready():
        if server.process.poll() is not None or time.monotonic() > deadline:
            raise UnavailableError(_last_line(log))
        time.sleep(0.02)


def _last_line(log: str) -> str:
    with open(log, encoding="utf-8", errors="replace") as file:
        return (file.read().strip().splitlines() or ["no output"])[-1]


_numbers = itertools.count(1)
_TABLES = "SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
_SEQUENCES = """
    SELECT format('%I.%I', schemaname, sequencename), coalesce(last_value, start_value), last_value IS NOT NULL
    FROM pg_sequences
"""
_END_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid <> ALL(%s)
"""
# The number of definitions of each kind, and the transaction that changed one last.
_CATALOGUE = " UNION ALL ".join(
    f"SELECT count(*), max(xmin::text::bigint) FROM pg_{name}"
    for name in (
        *("attrdef", "attribute", "auth_members", "authid", "class", "constraint", "db_role_setting", "default_acl"),
        *("namespace", "policy", "proc", "rewrite", "sequence", "trigger", "type"),
    )
)


class Content(NamedTuple):
    """What `Database.restore` needs."""

    rows: Mapping[str, bytes]  # of each table
    sequences: list[tuple[str, int, bool]]
    catalogue: list[tuple[int, int]]


@dataclass(slots=True)
class Database:
    """A database on the PostgreSQL server whose socket is in ``folder``."""

    folder: str
    name: str = "template1"

    def copy(self) -> Database:
        """Create a database with the content of this one, to which nobody is connected, and return it."""
        copy = Database(self.folder, f"stage_{os.getpid()}_{next(_numbers)}")
        with administer(self.folder) as connection:
            # Copying files takes less time than the default of PostgreSQL 15; before it was the only way.
            strategy = "STRATEGY file_copy" if connection.info.server_version >= 150000 else ""
            connection.execute(f"CREATE DATABASE {copy.name} TEMPLATE {self.name} {strategy}")
        return copy

    def content(self) -> Content:
        """Return the rows of all tables, for `restore`."""
        with administer(self.folder, self.name) as connection:
            tables = [name for (name,) in connection.execute(_TABLES)]
            rows = {name: _rows(connection, name) for name in tables}
            return Content(rows, connection.execute(_SEQUENCES).fetchall(), connection.execute(_CATALOGUE).fetchall())

    def restore(self, content: Content, kept: Sequence[int] = ()) -> bool:
        """End all other sessions and restore the rows of all tables; return False if there were other changes.

        ``kept``: the processes of sessions that are not ended.
        """
        with administer(self.folder, self.name) as connection, connection.transaction():
            connection.execute(_END_OTHERS, [list(kept)])
            connection.execute("SET LOCAL session_replication_role = replica")  # no triggers, no order of tables
            for name, rows in content.rows.items():
                if _rows(connection, name) != rows:
                    connection.execute(f"DELETE FROM {name}")
                    with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                        copy.write(rows)
            for name, value, is_called in content.sequences:
                connection.execute("SELECT setval(%s, %s, %s)", [name, value, is_called])
            return bool(connection.execute(_CATALOGUE).fetchall() == content.catalogue)

    def drop(self) -> None:
        """Delete this database and end all sessions in it."""
        with administer(self.folder) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)")

    def url(self, role: str) -> str:
        """Return the URL of this database for SQLAlchemy."""
        return f"postgresql+psycopg://{role}@/{self.name}?host={self.folder}"

    def has_blocked_session(self) -> bool:
        """Return whether a session in this database waits for a lock."""
        query = "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'"
        with administer(self.folder) as connection:
            return bool(connection.execute(query, [self.name]).fetchone()[0])


def _rows(connection: Any, table: str) -> bytes:
    with connection.cursor().copy(f"COPY {table} TO STDOUT") as copy:
        return b"".join(copy)


@contextmanager
def administer(folder: str, database: str = "postgres") -> Iterator[Any]:
    """Yield a superuser's connection to the server whose socket is in ``folder``. It is reused within this process."""
    import psycopg

    key = folder, database, os.getpid()  # a fork must not use the connection of its parent
    connection = _idle.pop(key, None) or psycopg.connect(host=folder, user="postgres", dbname=database, autocommit=True)
    yield connection
    _idle[key] = connection


_idle: dict[tuple[str, str, int], Any] = {}


@dataclass(slots=True)
class Keys:
    """One of the numbered databases on the Redis server whose socket is ``address``."""

    address: str
    number: int

    @property
    def url(self) -> str:
        """The URL of this database for redis-py, Flask-Caching and Flask-Limiter."""
        return f"unix://{self.address}?db={self.number}"

    def clear(self) -> None:
        """Delete all keys."""
        with self.client() as client:
            client.flushdb()

    def content(self) -> list[tuple[bytes, int, bytes]]:
        """Return all keys and their values for `restore`."""
        with self.client() as client:
            return [(key, max(client.pttl(key), 0), client.dump(key)) for key in client.scan_iter()]

    def restore(self, content: Sequence[tuple[bytes, int, bytes]]) -> None:
        """Replace all keys by those that `content` has returned."""
        with self.client() as client:
            client.flushdb()
            for key, milliseconds, value in content:
                client.restore(key, milliseconds, value)

    def client(self) -> Any:
        """Return a client of redis-py for this database."""
        import redis

        return redis.Redis.from_url(self.url)


if __name__ == "__main__":
    main()
