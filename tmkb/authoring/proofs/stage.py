"""A small application with tenants, on which examples are mounted. Needs the extra ``proofs``.

Two organizations, Acme (alice: admin, bob: member) and Globex (mallory: admin), with one document each.
What only one pattern needs stands in that pattern's own files.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import ModuleType, SimpleNamespace
from typing import Any

import time_machine
from celery import Celery
from flask import Blueprint, Flask, abort, jsonify
from flask.testing import FlaskClient
from flask_login import LoginManager, UserMixin, login_required
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import event

from tmkb.authoring.play import Response

ANONYMOUS = "anonymous"

db = SQLAlchemy()


class Organization(db.Model):  # type: ignore[name-defined, misc]  # a class that is made at run time
    """A tenant."""

    id = db.Column(db.Integer, primary_key=True)
    name = db.Column(db.String, nullable=False)


class User(UserMixin, db.Model):  # type: ignore[name-defined, misc]  # as above
    """Somebody who signs in; without an organization after having left it."""

    id = db.Column(db.Integer, primary_key=True)
    name = db.Column(db.String, nullable=False, unique=True)
    role = db.Column(db.String, nullable=False, default="member")
    organization_id = db.Column(db.ForeignKey("organization.id"))


class Document(db.Model):  # type: ignore[name-defined, misc]  # as above
    """Something that belongs to one person and one organization."""

    id = db.Column(db.Integer, primary_key=True)
    title = db.Column(db.String, nullable=False)
    state = db.Column(db.String, nullable=False, default="new")
    owner_id = db.Column(db.ForeignKey("user.id"), nullable=False)
    organization_id = db.Column(db.ForeignKey("organization.id"), nullable=False)
    deleted_at = db.Column(db.DateTime)


class Stage:
    """One running application with an example mounted on it: the target on which `play` plays cases."""

    def __init__(self, app: Flask, celery: Celery, rehearsal: _Rehearsal | None = None) -> None:
        self.app = app
        self.celery = celery
        self._rehearsal = rehearsal
        self.clients: dict[str, FlaskClient] = {}  # each actor has cookies of its own
        self.clock: time_machine.Traveller | None = None

    @property
    def branches(self) -> bool:
        """Whether `branch` works: the engine connects to a file that can be replaced."""
        return self._rehearsal is not None

    def branch(self) -> None:
        """Continue on a copy of the database. A forked process does this first, `pause` was called before the fork."""
        assert self._rehearsal is not None
        database = f"{tempfile.mkdtemp(dir=os.getcwd())}/stage.db"
        shutil.copyfile(self._rehearsal.database, database)
        self._rehearsal.database = database

    def pause(self) -> None:
        """Close all connections to the database."""
        with self.app.app_context():
            _close()

    def send(self, actor: str, method: str, path: str, parts: Mapping[str, Any]) -> Response:
        """Send a request as ``actor``; anonymous sends no user."""
        client = self.clients.setdefault(actor, self.app.test_client() if actor == ANONYMOUS else self.client(actor))
        options = {key: value for key, value in parts.items() if key in ("json", "data", "headers")}
        if "form" in parts or "files" in parts:
            files = {name: _file(**file) for name, file in parts.get("files", {}).items()}
            options["data"] = {**parts.get("form", {}), **files}
        answer = client.open(path, method=method, **options)
        return Response(answer.status_code, answer.get_data(as_text=True), dict(answer.headers))

    def event(self, name: str, values: Mapping[str, Any]) -> Any:
        """Call ``event_NAME`` of the application, or one of the common events."""
        function = getattr(sys.modules.get("app"), f"event_{name}", None) or _EVENTS[name]
        with self.app.app_context():
            result = function(**values)
            db.session.commit()
        return result

    def state(self, name: str) -> Any:
        """Return the result of ``state_NAME`` of the application."""
        with self.app.app_context():
            return getattr(sys.modules["app"], f"state_{name}")()

    def wait(self, seconds: float) -> None:
        """Advance the clock of this process."""
        if self.clock is None:
            self.clock = time_machine.travel(datetime.now(UTC), tick=True).start()
        self.clock.shift(seconds)

    def during(self, after: str, rival: Callable[[], object]) -> AbstractContextManager[None]:
        """Run ``rival`` to its end after the first statement that contains ``after``."""
        return self.interrupted_after(after, rival)

    def client(self, user: str) -> FlaskClient:
        """A client whose requests are signed in as ``user``."""
        client = self.app.test_client()
        client.environ_base["HTTP_X_USER"] = user
        return client

    def work(self) -> Response:
        """Run all queued jobs."""
        results = self.results()
        raised = [type(result).__name__ for result in results if isinstance(result, BaseException)]
        return Response(text=" ".join(map(repr, results)), raised=raised)

    def results(self) -> list[Any]:
        """Let the worker take what is queued now, outside any request; gives results, an exception being one.

        Celery's eager mode would run tasks inside the request, where they still see its user. So messages are taken off
        a real queue, through the real serializer.
        """
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
    def interrupted_after(self, fragment: str, rival: Callable[[], object]) -> Iterator[None]:
        """Run ``rival`` to its end, once, right after the first statement that contains ``fragment``.

        Raises RuntimeError if there is no such statement: an interleaving that never took place proves nothing.
        """
        fired = threading.Event()

        def listen(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            if fragment in statement and not fired.is_set():
                fired.set()
                thread = threading.Thread(target=rival)
                thread.start()
                thread.join()

        with self.app.app_context():
            engine = db.engine
        event.listen(engine, "after_cursor_execute", listen)
        try:
            yield
        finally:
            event.remove(engine, "after_cursor_execute", listen)
        if not fired.is_set():
            raise RuntimeError(f"no statement contains {fragment!r}: the interleaving never took place")


def _leave(user: str) -> None:
    """Take ``user`` out of the organization."""
    _account(user).organization_id = None


def _join(user: str, organization: str, role: str = "member") -> None:
    """Make ``user`` a member of ``organization``, and of no other."""
    account = _account(user)
    account.role = role
    account.organization_id = db.session.scalars(db.select(Organization).filter_by(name=organization)).one().id


def _set_role(user: str, role: str) -> None:
    _account(user).role = role


def _delete_user(user: str) -> None:
    db.session.delete(_account(user))


def _account(user: str) -> Any:
    return db.session.scalars(db.select(User).filter_by(name=user)).one()


# What can happen in every application; others are functions `event_NAME` of the application.
_EVENTS: dict[str, Callable[..., Any]] = {
    "leave": _leave,
    "join": _join,
    "set_role": _set_role,
    "delete_user": _delete_user,
}


def _file(name: str, type: str, content: str) -> tuple[io.BytesIO, str, str]:  # a key of attacks.yaml
    return io.BytesIO(content.encode()), name, type


@dataclass(slots=True)
class _Rehearsal:
    """An application and a database as every stage begins, made before the example is known, or with one mounted."""

    app: Flask
    tables: dict[Any, tuple[int, ...]]  # those in the database, and how much belongs to each
    contents: bytes
    database: str = ""  # where the engine connects to
    example: ModuleType | SimpleNamespace | None = None  # what is mounted

    def fits(self, example: ModuleType | SimpleNamespace | None, config: dict[str, Any]) -> bool:
        """Return whether the tables are unchanged, and this stage needs no other example and no other engine."""
        if self.example is not None:
            return self.example is example and all(self.app.config.get(key) == value for key, value in config.items())
        altered = any(_extent(table) != extent for table, extent in self.tables.items())
        return not altered and not any(key.startswith("SQLALCHEMY_") for key in config)


_rehearsed: list[_Rehearsal] = []  # at most one, which the first stage of a forked process takes


@contextmanager
def stage(example: ModuleType | SimpleNamespace | None = None, **config: Any) -> Iterator[Stage]:
    """A fresh application and database in the current folder, which is a temporary one, with the example mounted.

    Of the example are used: ``bp`` (a blueprint), ``cache`` (a Flask-Caching cache), and whatever models it defines.
    """
    database = f"{tempfile.mkdtemp(dir=os.getcwd())}/stage.db"
    rehearsal = _rehearsed.pop() if _rehearsed else None
    if rehearsal is not None and not rehearsal.fits(example, config):
        rehearsal = None
    app = _application(database, config) if rehearsal is None else rehearsal.app
    celery = Celery("app", broker="memory://", set_as_current=True)
    celery.set_default()
    if rehearsal is None or rehearsal.example is None:
        app.config.update(config)
        _mount(example, app)
    with app.app_context():
        if rehearsal is None:
            _furnish()
        else:
            _restore(rehearsal, database)
    try:
        yield Stage(app, celery, rehearsal)
    finally:
        with app.app_context():
            _close()


def rehearse(example: ModuleType, **config: Any) -> None:
    """Mount ``example`` and make its tables once, for all processes that are forked from this one.

    Without `warm` before it, this does nothing.
    """
    if not _rehearsed or not _rehearsed[0].fits(example, config):
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
    for cache in {module.cache for module in modules if hasattr(module, "cache")}:
        cache.init_app(app, config={"CACHE_TYPE": "SimpleCache"})
    for blueprint in {module.bp for module in modules if hasattr(module, "bp")}:
        app.register_blueprint(blueprint)


def warm() -> None:
    """Do once what a first stage and a common example do, so that forked children inherit what it has loaded."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            _perform()
            _rehearsed.append(_rehearse(f"{folder}/stage.db"))
        finally:
            os.chdir(before)


def _application(database: str, config: dict[str, Any]) -> Flask:
    app = Flask("app")
    app.config.update(SECRET_KEY="stage", SQLALCHEMY_DATABASE_URI=f"sqlite:///{database}", **config)
    db.init_app(app)
    login = LoginManager(app)
    login.request_loader(lambda request: _named(request.headers.get("X-User")).first())
    with app.app_context():
        event.listen(db.engine, "connect", _tune)
    return app


def _named(name: str | None) -> Any:
    return db.session.query(User).filter_by(name=name)


def _furnish() -> None:
    """Make all tables, and the people."""
    db.create_all()
    db.session.add_all(_people())
    db.session.commit()


def _close() -> None:
    db.session.remove()
    db.engine.dispose()


def _restore(rehearsal: _Rehearsal, database: str) -> None:
    """Put the rehearsed database where this process may write, and add the tables of the example."""
    with open(database, "wb") as file:
        file.write(rehearsal.contents)
    rehearsal.database = database
    added = [table for table in db.metadata.tables.values() if table not in rehearsal.tables]
    if added:
        db.metadata.create_all(db.engine, added, checkfirst=False)


def _perform() -> None:
    """A stage with requests and a task."""

    def task() -> None:
        """Does nothing."""

    bp = Blueprint("warm", __name__)
    bp.get("/<int:answer>", endpoint="get")(login_required(jsonify))
    bp.post("/<int:code>", endpoint="post")(login_required(abort))
    with stage(SimpleNamespace(bp=bp)) as s:
        s.client("bob").get("/200")
        s.client("bob").post("/403", json={})
        s.celery.task(task).delay()
        assert s.results() == [None]


def _rehearse(database: str) -> _Rehearsal:
    """An application on which no request was made, so that blueprints can still be registered."""
    app = _application(database, {})
    with app.app_context():
        _furnish()
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
    """The statements that most proofs need, which are compiled by it."""
    assert _named("bob").first() is not None
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


def _people() -> list[Any]:
    return [
        Organization(id=1, name="Acme"),
        Organization(id=2, name="Globex"),
        User(id=1, name="alice", role="admin", organization_id=1),
        User(id=2, name="bob", role="member", organization_id=1),
        User(id=3, name="mallory", role="admin", organization_id=2),
        Document(id=1, title="Acme payroll", owner_id=1, organization_id=1),
        Document(id=2, title="Globex plan", owner_id=3, organization_id=2),
    ]


def _tune(connection: Any, _record: Any) -> None:
    # Readers must not block writers, which interleavings need; and nothing has to outlive the run.
    connection.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA busy_timeout=1000")
