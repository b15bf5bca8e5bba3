"""A small multi-tenant application on which examples are mounted. Requires the extra ``proofs``.

It has two organizations, Acme (alice: admin, bob: member) and Globex (mallory: admin), with one document each.
Code that only one pattern needs belongs in the files of that pattern.

The data is in a SQLite file, or in a PostgreSQL database if attacks.yaml names that service. There the role
``owner`` makes the tables and executes ``MIGRATION``, the SQL statements of the example. The application connects as
the role ``app``. `db.engines["owner"]` connects as the owner, and `db.engines["superuser"]` as a superuser, for
events and states that row-level security must not limit. With Redis, the configuration has ``REDIS_URL``.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple, Protocol

import time_machine
from celery import Celery
from flask import Blueprint, Flask, abort, jsonify
from flask.testing import FlaskClient
from flask_login import LoginManager, UserMixin, login_required
from flask_sqlalchemy import SQLAlchemy
from kombu.transport.memory import Channel
from sqlalchemy import Engine, event
from sqlalchemy.orm import Session, configure_mappers

from tmkb.authoring.play import Response, Rival
from tmkb.authoring.proofs import jobs, reach, rivals, traces
from tmkb.authoring.proofs.connections import Connections
from tmkb.authoring.proofs.services import Addresses, Content, Database, Keys

ANONYMOUS = "anonymous"

db = SQLAlchemy()


class Organization(db.Model):  # type: ignore[name-defined, misc]  # created at run time
    """A tenant."""

    id = db.Column(db.Integer, primary_key=True)
    name = db.Column(db.String, nullable=False)


class User(UserMixin, db.Model):  # type: ignore[name-defined, misc]  # as above
    """A user who signs in. Without an organization after leaving it."""

    id = db.Column(db.Integer, primary_key=True)
    name = db.Column(db.String, nullable=False, unique=True)
    role = db.Column(db.String, nullable=False, default="member")
    organization_id = db.Column(db.ForeignKey("organization.id"))


class Document(db.Model):  # type: ignore[name-defined, misc]  # as above
    """A document of one user and one organization."""

    id = db.Column(db.Integer, primary_key=True)
    title = db.Column(db.String, nullable=False)
    state = db.Column(db.String, nullable=False, default="new")
    owner_id = db.Column(db.ForeignKey("user.id"), nullable=False)
    organization_id = db.Column(db.ForeignKey("organization.id"), nullable=False)
    deleted_at = db.Column(db.DateTime)


class Stage:
    """An application with an example mounted on it: the target on which `play` plays cases."""

    def __init__(
        self, app: Flask, celery: Celery, data: _Data | None, keys: Keys | None, worker: jobs.Worker | None = None
    ) -> None:
        self.app = app
        self.celery = celery
        self._data = data
        self._keys = keys  # of Redis, if the pattern needs it
        self._worker = worker  # of Celery, if the case needs a real one
        self.clients: dict[str, FlaskClient] = {}  # each actor has cookies of its own
        self.clock: time_machine.Traveller | None = None
        self.waited = 0.0  # seconds by which the clock is advanced
        self._as_saved = False  # whether nothing has been performed since `save` or `restore`
        self._states: dict[str, tuple[Any, bytes]] = {}  # those of the saved state

    @property
    def restorable(self) -> bool:
        """Whether `save` and `restore` work: the data can be copied."""
        return self._data is not None

    @property
    def folder(self) -> str:
        """The folder of the files that `restore` replaces; an empty text if there are none."""
        return os.path.dirname(self._data.database) if isinstance(self._data, _Rehearsal) else ""

    def save(self) -> Saved:
        """Return the data, the clients, the clock and the queued jobs for `restore`."""
        assert self._data is not None
        self._disconnect()
        keys = self._keys.content() if self._keys is not None else []
        saved = Saved(self._data.save(), keys, dict(self.clients), _cookies(self.clients), self.waited, _jobs(), {})
        self._as_saved, self._states = True, saved.states
        return saved

    def restore(self, saved: Saved) -> bool:
        """Return to the state of `save`; return False if the data has changed in a way that cannot be undone."""
        assert self._data is not None
        self._disconnect()
        if self._keys is not None:
            self._keys.restore(saved.keys)
        self.clients = dict(saved.clients)
        for actor, cookies in saved.cookies.items():
            self.clients[actor]._cookies = dict(cookies)
        self._stop_clock()
        if saved.waited:
            self.wait(saved.waited)
        for name, queue in Channel.queues.items():
            queue.queue.clear()
            queue.queue.extend(saved.jobs.get(name, ()))
        self._as_saved, self._states = True, saved.states
        return self._data.restore(saved.data)

    def _disconnect(self) -> None:
        with self.app.app_context():
            _close()

    def roots(self) -> list[Any]:
        """Return the objects through which a case can leave something behind, besides the modules of the pattern."""
        return [vars(self.app), self.app.config, os.environ, db.session.registry.registry]

    def signature(self) -> tuple[int, ...]:
        """Return numbers that differ if a case has left a thread, or a listener for events of sessions or engines."""
        return threading.active_count(), traces.sql_listeners()

    def send(self, actor: str, method: str, path: str, parts: Mapping[str, Any]) -> Response:
        """Send a request as ``actor``; anonymous sends no user."""
        self._as_saved = False
        client = self.clients.setdefault(actor, self.app.test_client() if actor == ANONYMOUS else self.client(actor))
        options = {key: value for key, value in parts.items() if key in ("json", "data", "headers")}
        if "form" in parts or "files" in parts:
            files = {name: _file(**file) for name, file in parts.get("files", {}).items()}
            options["data"] = {**parts.get("form", {}), **files}
        answer = client.open(path, method=method, **options)
        return Response(answer.status_code, answer.get_data(as_text=True), dict(answer.headers))

    def event(self, name: str, values: Mapping[str, Any]) -> Any:
        """Call ``event_NAME`` of the application, or one of the common events."""
        self._as_saved = False
        function = getattr(sys.modules.get("app"), f"event_{name}", None) or _EVENTS[name]
        with self.app.app_context():
            result = function(**values)
            db.session.commit()
        return result

    def state(self, name: str) -> Any:
        """Return the result of ``state_NAME`` of the application, which only reads.

        It is called once for all cases that ask for the state before they do anything.
        """
        as_saved = self._as_saved
        if not as_saved or name not in self._states:
            with self.app.app_context():
                result = getattr(sys.modules["app"], f"state_{name}")()
            if not as_saved:
                return result
            self._states[name] = result, reach.marks()
        result, marks = self._states[name]
        reach.add_marks(marks)
        return result

    def wait(self, seconds: float) -> None:
        """Advance the clock of this process."""
        self._as_saved = False
        if self.clock is None:
            self._traveller = time_machine.travel(datetime.now(UTC), tick=True)
            self.clock = self._traveller.start()
        self.clock.shift(seconds)
        self.waited += seconds

    def _stop_clock(self) -> None:
        if self.clock is not None:
            self._traveller.stop()
            self.clock = None
            self.waited = 0.0

    def client(self, user: str) -> FlaskClient:
        """Return a test client that is signed in as ``user``."""
        client = self.app.test_client()
        client.environ_base["HTTP_X_USER"] = user
        return client

    def work(self) -> Response:
        """Run all queued jobs."""
        self._as_saved = False
        results = self.results()
        raised = [type(result).__name__ for result in results if isinstance(result, BaseException)]
        return Response(text=" ".join(map(repr, results)), raised=raised)

    def results(self) -> list[Any]:
        """Run the queued tasks outside any request, and return their results or exceptions.

        Celery's eager mode would run tasks inside the request, where they still see its user. Here they pass through a
        real queue and the real serializer.
        """
        if self._worker is not None and self._keys is not None:
            with self._keys.client() as client:
                return self._worker.results(client)
        results: list[Any] = []
        with self.celery.connection_for_read() as connection:
            queue = connection.SimpleQueue("celery")
            while queue.qsize():
                message = queue.get(block=False)
                message.ack()
                args, kwargs, _ = message.payload
                with self.app.app_context():
                    results.append(self.celery.tasks[message.headers["task"]].apply(args, kwargs).result)
            queue.close()
        return results

    @contextmanager
    def during(self, after: str | None, rival: Rival) -> Iterator[dict[str, Any]]:
        """Run ``rival`` once, after the first SQL statement that contains ``after``; before the first COMMIT if None.

        The statement's own thread continues when ``rival`` has ended. On PostgreSQL it also continues when ``rival``
        waits for a lock, and ``rival`` ends later. There it runs in another process, whose result is yielded.

        Raises RuntimeError if there was no such statement, because then no interleaving was tested.
        """
        with self.app.app_context():
            engines = list(db.engines.values())
        other = self._rival(rival, engines)

        def listen(_connection: Any, *args: Any) -> None:
            if not other.started and (after is None or after in args[1]):
                other.start()

        name = "commit" if after is None else "after_cursor_execute"
        for engine in engines:
            event.listen(engine, name, listen)
        result: dict[str, Any] = {}
        try:
            yield result
        finally:
            result |= other.result() or {}
            for engine in engines:
                event.remove(engine, name, listen)
        if not other.started:
            point = "is committed" if after is None else f"contains {after!r}"
            raise RuntimeError(f"no statement {point}: the interleaving never took place")

    def _rival(self, rival: Rival, engines: Sequence[Engine]) -> rivals.InThread | rivals.InProcess:
        if not isinstance(self._data, _OnPostgresql):
            return rivals.InThread(rival)

        def begin() -> None:
            for engine in engines:
                engine.dispose(close=False)  # the connections belong to the parent

        return rivals.InProcess(rival, begin, self._data.database.has_blocked_session)


def _leave(user: str) -> None:
    """Take ``user`` out of the organization."""
    _account(user).organization_id = None


def _join(user: str, organization: str, role: str = "member") -> None:
    """Move ``user`` to ``organization``."""
    account = _account(user)
    account.role = role
    account.organization_id = db.session.scalars(db.select(Organization).filter_by(name=organization)).one().id


def _set_role(user: str, role: str) -> None:
    _account(user).role = role


def _delete_user(user: str) -> None:
    db.session.delete(_account(user))


def _account(user: str) -> Any:
    return db.session.scalars(db.select(User).filter_by(name=user)).one()


# Events of every application; an application defines others as functions `event_NAME`.
_EVENTS: dict[str, Callable[..., Any]] = {
    "leave": _leave,
    "join": _join,
    "set_role": _set_role,
    "delete_user": _delete_user,
}


class Saved(NamedTuple):
    """The state of a stage at one moment."""

    data: Any  # of the database
    keys: list[tuple[bytes, int, bytes]]  # of Redis
    clients: dict[str, FlaskClient]
    cookies: dict[str, dict[Any, Any]]  # of each client
    waited: float
    jobs: dict[str, list[Any]]  # of each queue
    states: dict[str, tuple[Any, bytes]]  # what `Stage.state` returned, with the marks of what it executed


def _cookies(clients: Mapping[str, FlaskClient]) -> dict[str, dict[Any, Any]]:
    return {actor: dict(client._cookies) for actor, client in clients.items() if client._cookies is not None}


def _jobs() -> dict[str, list[Any]]:
    return {name: list(queue.queue) for name, queue in Channel.queues.items()}


def _file(name: str, type: str, content: str) -> tuple[io.BytesIO, str, str]:  # a key of attacks.yaml
    return io.BytesIO(content.encode()), name, type


class _Data(Protocol):
    """Data that can be restored while nobody is connected."""

    def save(self) -> Any:
        """Return the data for `restore`."""

    def restore(self, saved: Any) -> bool:
        """Restore the data of `save`; return False if that is not possible."""


@dataclass(slots=True)
class _OnPostgresql:
    """A PostgreSQL database."""

    database: Database
    connections: list[Connections] = field(default_factory=list)

    def save(self) -> Content:
        for each in self.connections:
            each.keep()
        return self.database.content()

    def restore(self, saved: Content) -> bool:
        return self.database.restore(saved, [pid for each in self.connections for pid in each.processes()])


@dataclass(slots=True)
class _Rehearsal:
    """The application and SQLite database of a stage, prepared without an example or with one mounted."""

    app: Flask
    tables: dict[Any, tuple[int, ...]]  # the tables in the database, with their extent
    contents: bytes
    database: str = ""  # the file that the engine connects to
    example: ModuleType | SimpleNamespace | None = None  # the mounted one

    def save(self) -> bytes:
        with open(self.database, "rb") as file:
            return file.read()

    def restore(self, saved: bytes) -> bool:
        folder = os.path.dirname(self.database)
        for name in os.listdir(folder):
            os.remove(os.path.join(folder, name))
        with open(self.database, "wb") as file:  # a new one: somebody may still have the old one open
            file.write(saved)
        return True

    def fits(self, example: ModuleType | SimpleNamespace | None, config: dict[str, Any]) -> bool:
        """Return whether a stage with this example and configuration can use this application and its tables."""
        if self.example is not None:
            return self.example is example and all(self.app.config.get(key) == value for key, value in config.items())
        altered = any(_extent(table) != extent for table, extent in self.tables.items())
        return not altered and not any(key.startswith("SQLALCHEMY_") for key in config)


_rehearsed: list[_Rehearsal] = []  # at most one, used by the first stage of a forked process
_ENGINE_OPTIONS = {"use_native_hstore": False}  # the lookup costs a query per connection
_services: dict[str, Any] = {}  # `addresses` of `use`, and the number of the database of Redis


def use(addresses: Addresses, number: int) -> None:
    """Let all stages of this process use these services. Of Redis they use the database with this number."""
    _services.clear()
    _services.update(addresses)
    for name in {"redis", "celery"} & {*addresses}:
        _services[name] = Keys(addresses[name], number)


@contextmanager
def stage(example: ModuleType | SimpleNamespace | None = None, **config: Any) -> Iterator[Stage]:
    """Create an application and its database in the current, temporary folder, and mount ``example``.

    The example can define ``bp`` (a blueprint), ``cache`` (a Flask-Caching cache) and models.
    """
    keys: Keys | None = _services.get("celery") or _services.get("redis")
    broker = jobs.broker(keys.address, keys.number) if keys is not None and "celery" in _services else ""
    celery = Celery("app", broker=broker or "memory://", backend=broker or None, set_as_current=True)
    celery.set_default()
    if keys is not None:
        keys.clear()
    config = _with_redis(config)
    make = _staged_on_postgresql if "postgresql" in _services else _staged
    with make(example, config) as (app, data):
        with suppress(Exception):  # it is raised again by the first query
            configure_mappers()
        worker = _worker(celery, app) if broker else None
        try:
            yield Stage(app, celery, data, keys, worker)
        finally:
            if worker is not None:
                worker.close()
            with app.app_context():
                _close()


def _worker(celery: Celery, app: Flask) -> jobs.Worker:
    """Start a Celery worker that runs each job in a context of ``app``, with new connections to its database."""
    contexts = []

    def begin() -> None:
        contexts.append(app.app_context())
        contexts[-1].push()

    def end() -> None:
        _close()
        contexts.pop().pop()

    with app.app_context():
        _close()  # the process must not share connections
    return jobs.Worker(celery, begin, end)


def _with_redis(config: dict[str, Any]) -> dict[str, Any]:
    return {"REDIS_URL": _services["redis"].url, **config} if "redis" in _services else config


@contextmanager
def _staged(
    example: ModuleType | SimpleNamespace | None, config: dict[str, Any]
) -> Iterator[tuple[Flask, _Data | None]]:
    """Yield an application on a SQLite file in the current folder."""
    database = f"{tempfile.mkdtemp(dir=os.getcwd())}/stage.db"
    rehearsal = _rehearsed.pop() if _rehearsed else None
    if rehearsal is not None and not rehearsal.fits(example, config):
        rehearsal = None
    app = _application(f"sqlite:///{database}", config) if rehearsal is None else rehearsal.app
    if rehearsal is None or rehearsal.example is None:
        app.config.update(config)
        _mount(example, app)
    with app.app_context():
        if rehearsal is None:
            _create_data()
        else:
            _restore(rehearsal, database)
    yield app, rehearsal


@contextmanager
def _staged_on_postgresql(
    example: ModuleType | SimpleNamespace | None, config: dict[str, Any]
) -> Iterator[tuple[Flask, _Data]]:
    """Yield an application on a PostgreSQL database, which is deleted afterwards."""
    database = Database(_services["postgresql"]).copy()
    data = _OnPostgresql(database)
    logins = {"owner": "owner", "superuser": "postgres"}
    binds = {bind: {"url": database.url(login), **_ENGINE_OPTIONS} for bind, login in logins.items()}
    defaults = {"SQLALCHEMY_BINDS": binds, "SQLALCHEMY_ENGINE_OPTIONS": _ENGINE_OPTIONS}
    app = _application(database.url("app"), {**defaults, **config})
    _mount(example, app)
    try:
        with app.app_context():
            data.connections += map(Connections, db.engines.values())
            with db.engines["owner"].begin() as connection:
                db.metadata.create_all(connection)
                _populate(connection)
                if migration := getattr(example, "MIGRATION", None):
                    connection.connection.execute(migration)
        yield app, data
    finally:
        with app.app_context():
            _close()
        for each in data.connections:
            each.close()
        database.drop()


def _populate(connection: Any) -> None:
    """Insert the initial rows, and start later ids after theirs."""
    with Session(connection) as session:
        for each in _initial_rows():
            session.add(each)
            session.flush()  # foreign keys need this order
        for model in (Organization, User, Document):
            name = model.__table__.name
            session.execute(db.text(f"""SELECT setval(pg_get_serial_sequence('"{name}"', 'id'), 10)"""))
        session.commit()


def rehearse(example: ModuleType, **config: Any) -> None:
    """Mount ``example`` and create its tables once, for all processes that are forked from this one.

    Without `warm` before it, this does nothing.
    """
    config = _with_redis(config)
    if "postgresql" in _services or not _rehearsed or not _rehearsed[0].fits(example, config):
        return
    rehearsal = _rehearsed[0]
    rehearsal.app.config.update(config)
    _mount(example, rehearsal.app)
    with rehearsal.app.app_context():
        database = f"{tempfile.mkdtemp(dir=os.getcwd())}/stage.db"
        _restore(rehearsal, database)
        _close()
        with open(database, "rb") as file:
            rehearsal.contents = file.read()
    rehearsal.tables = {table: _extent(table) for table in db.metadata.tables.values()}
    rehearsal.example = example


def _mount(example: ModuleType | SimpleNamespace | None, app: Flask) -> None:
    """Mount the blueprints and the cache of ``example`` and of the application around it."""
    modules = [module for module in (example, sys.modules.get("app")) if module is not None]
    url = app.config.get("REDIS_URL")
    kind = {"CACHE_TYPE": "RedisCache", "CACHE_REDIS_URL": url} if url else {"CACHE_TYPE": "SimpleCache"}
    for cache in {module.cache for module in modules if hasattr(module, "cache")}:
        cache.init_app(app, config=kind)
    for blueprint in {module.bp for module in modules if hasattr(module, "bp")}:
        app.register_blueprint(blueprint)


def warm() -> None:
    """Run a stage with requests and a task, so that forked children inherit what it loads and compiles."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            _run_common_steps()
            _rehearsed.append(_rehearse(f"{folder}/stage.db"))
        finally:
            os.chdir(before)


def _application(database: str, config: dict[str, Any]) -> Flask:
    app = Flask("app")
    app.config.update(SECRET_KEY="stage", SQLALCHEMY_DATABASE_URI=database, **config)
    db.init_app(app)
    login = LoginManager(app)
    login.request_loader(lambda request: _named(request.headers.get("X-User")))
    with app.app_context():
        if db.engine.name == "sqlite":
            event.listen(db.engine, "connect", _configure_connection)
    return app


_USER = db.select(User).where(User.name == db.bindparam("name"))  # made once, because every request selects a user


def _named(name: str | None) -> Any:
    return db.session.scalars(_USER, {"name": name}).first()


def _create_data() -> None:
    """Create all tables, organizations, users and documents."""
    db.create_all()
    db.session.add_all(_initial_rows())
    db.session.commit()


def _close() -> None:
    db.session.remove()
    for engine in db.engines.values():
        engine.dispose()


def _restore(rehearsal: _Rehearsal, database: str) -> None:
    """Write a copy of the prepared database to ``database``, and add the tables of the example."""
    with open(database, "wb") as file:
        file.write(rehearsal.contents)
    rehearsal.database = database
    added = [table for table in db.metadata.tables.values() if table not in rehearsal.tables]
    if added:
        db.metadata.create_all(db.engine, added, checkfirst=False)


def _run_common_steps() -> None:
    """Run a stage with requests and a task."""

    def task() -> None:
        """Do nothing."""

    bp = Blueprint("warm", __name__)
    bp.get("/<int:answer>", endpoint="get")(login_required(jsonify))
    bp.post("/<int:code>", endpoint="post")(login_required(abort))
    with stage(SimpleNamespace(bp=bp)) as s:
        s.client("bob").get("/200")
        s.client("bob").post("/403", json={})
        s.celery.task(task).delay()
        assert s.results() == [None]


def _rehearse(database: str) -> _Rehearsal:
    """Return an application without requests so far, so that blueprints can still be registered."""
    app = _application(f"sqlite:///{database}", {})
    with app.app_context():
        _create_data()
        _close()
        with open(database, "rb") as file:
            contents = file.read()
        _write_and_read()
        _close()
        tables = {table: _extent(table) for table in db.metadata.tables.values()}
        rehearsal = _Rehearsal(app, tables, contents)
        event.listen(
            db.engine, "do_connect", lambda _dialect, _record, args, _: args.__setitem__(0, rehearsal.database)
        )
    return rehearsal


def _write_and_read() -> None:
    """Run the statements that most proofs need, so that they are compiled."""
    assert _named("bob") is not None
    for model in (Document, User, Organization):
        assert db.session.get(model, 1) is not None
        assert db.session.scalars(db.select(model)).all()
    document = Document(title="Draft", owner_id=1, organization_id=1)
    db.session.add(document)
    db.session.commit()
    document.title = "Final"
    db.session.commit()
    db.session.delete(document)
    db.session.commit()


def _extent(table: Any) -> tuple[int, ...]:
    return len(table.columns), len(table.constraints), len(table.indexes)


def _initial_rows() -> list[Any]:
    return [
        Organization(id=1, name="Acme"),
        Organization(id=2, name="Globex"),
        User(id=1, name="alice", role="admin", organization_id=1),
        User(id=2, name="bob", role="member", organization_id=1),
        User(id=3, name="mallory", role="admin", organization_id=2),
        Document(id=1, title="Acme payroll", owner_id=1, organization_id=1),
        Document(id=2, title="Globex plan", owner_id=3, organization_id=2),
    ]


def _configure_connection(connection: Any, _record: Any) -> None:
    # Interleavings need readers that do not block writers. Nothing has to survive the run.
    connection.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA busy_timeout=1000")
