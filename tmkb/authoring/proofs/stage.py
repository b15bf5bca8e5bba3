"""A small multi-tenant application on which examples are mounted. Requires the extra ``proofs``.

It has two organizations, Acme (alice: admin, bob: member) and Globex (mallory: admin), with one document each.
Code that only one pattern needs belongs in the files of that pattern.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

from celery import Celery
from flask import Blueprint, Flask, abort, jsonify
from flask.testing import FlaskClient
from flask_login import LoginManager, UserMixin, login_required
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import event

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
    """An application with an example mounted on it."""

    def __init__(self, app: Flask, celery: Celery) -> None:
        self.app = app
        self.celery = celery

    def client(self, user: str) -> FlaskClient:
        """Return a test client that is signed in as ``user``."""
        client = self.app.test_client()
        client.environ_base["HTTP_X_USER"] = user
        return client

    def work(self) -> list[Any]:
        """Run the queued tasks outside any request, and return their results or exceptions.

        Celery's eager mode would run tasks inside the request, where they still see its user. Here they pass through a
        real queue and the real serializer.
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
        """Run ``rival`` once, to its end, right after the first SQL statement that contains ``fragment``.

        Raises RuntimeError if there was no such statement, because then no interleaving was tested.
        """
        fired = False

        def listen(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            nonlocal fired
            if fragment in statement and not fired:
                fired = True
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
        if not fired:
            raise RuntimeError(f"no statement contains {fragment!r}: the interleaving never took place")


@dataclass(slots=True)
class _Rehearsal:
    """An application and a database in their initial state, prepared before the example is known."""

    app: Flask
    tables: dict[Any, tuple[int, ...]]  # of this module, with the number of their columns, constraints and indexes
    contents: bytes  # of the database
    database: str = ""  # the path that the engine connects to

    def fits(self, config: dict[str, Any]) -> bool:
        """Return whether the example changed no table, and ``config`` does not configure the engine."""
        altered = any(_extent(table) != extent for table, extent in self.tables.items())
        return not altered and not any(key.startswith("SQLALCHEMY_") for key in config)


_rehearsed: list[_Rehearsal] = []  # at most one, used by the first stage of a forked process


@contextmanager
def stage(example: ModuleType | SimpleNamespace | None = None, **config: Any) -> Iterator[Stage]:
    """Create an application and its database in the current, temporary folder, and mount ``example``.

    The example can define ``bp`` (a blueprint), ``cache`` (a Flask-Caching cache) and models.
    """
    database = f"{tempfile.mkdtemp(dir=os.getcwd())}/stage.db"
    rehearsal = _rehearsed.pop() if _rehearsed else None
    if rehearsal is not None and not rehearsal.fits(config):
        rehearsal = None
    app = _application(database, config) if rehearsal is None else rehearsal.app
    app.config.update(config)
    celery = Celery("app", broker="memory://", set_as_current=True)
    celery.set_default()
    if cache := getattr(example, "cache", None):
        cache.init_app(app, config={"CACHE_TYPE": "SimpleCache"})
    if blueprint := getattr(example, "bp", None):
        app.register_blueprint(blueprint)
    with app.app_context():
        if rehearsal is None:
            _create_data()
        else:
            _restore(rehearsal, database)
    try:
        yield Stage(app, celery)
    finally:
        with app.app_context():
            _close()


def warm() -> None:
    """Do what a first stage and a common example do, so that forked children inherit the loaded modules and caches."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            _exercise()
            _rehearsed.append(_rehearse(f"{folder}/stage.db"))
        finally:
            os.chdir(before)


def _application(database: str, config: dict[str, Any]) -> Flask:
    app = Flask("app")
    app.config.update(SECRET_KEY="stage", SQLALCHEMY_DATABASE_URI=f"sqlite:///{database}", **config)
    db.init_app(app)
    login = LoginManager(app)
    login.request_loader(lambda request: _user(request.headers.get("X-User")).first())
    with app.app_context():
        event.listen(db.engine, "connect", _tune)
    return app


def _user(name: str | None) -> Any:
    return db.session.query(User).filter_by(name=name)


def _create_data() -> None:
    """Create all tables, organizations, users and documents."""
    db.create_all()
    db.session.add_all(
        [
            Organization(id=1, name="Acme"),
            Organization(id=2, name="Globex"),
            User(id=1, name="alice", role="admin", organization_id=1),
            User(id=2, name="bob", role="member", organization_id=1),
            User(id=3, name="mallory", role="admin", organization_id=2),
            Document(id=1, title="Acme payroll", owner_id=1, organization_id=1),
            Document(id=2, title="Globex plan", owner_id=3, organization_id=2),
        ]
    )
    db.session.commit()


def _close() -> None:
    db.session.remove()
    db.engine.dispose()


def _restore(rehearsal: _Rehearsal, database: str) -> None:
    """Copy the rehearsed database to ``database``, and add the tables of the example."""
    with open(database, "wb") as file:
        file.write(rehearsal.contents)
    rehearsal.database = database
    added = [table for table in db.metadata.tables.values() if table not in rehearsal.tables]
    if added:
        db.metadata.create_all(db.engine, added, checkfirst=False)


def _exercise() -> None:
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
        assert s.work() == [None]


def _rehearse(database: str) -> _Rehearsal:
    """Prepare an application without requests, so that blueprints can still be registered."""
    app = _application(database, {})
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
    """Execute the statements of most proofs, so that they are compiled."""
    assert _user("bob").first() is not None
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


def _tune(connection: Any, _record: Any) -> None:
    # Interleavings need readers that do not block writers. Nothing has to survive the run.
    connection.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA busy_timeout=1000")
