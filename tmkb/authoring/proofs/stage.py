"""A small multi-tenant application on which examples are mounted. Requires the extra ``proofs``.

It has two organizations, Acme (alice: admin, bob: member) and Globex (mallory: admin), with one document each.
Code that only one pattern needs belongs in the files of that pattern.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
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

    @contextlib.contextmanager
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


@contextlib.contextmanager
def stage(example: ModuleType | SimpleNamespace | None = None, **config: Any) -> Iterator[Stage]:
    """Create an application and its database in the current, temporary folder, and mount ``example``.

    The example can define ``bp`` (a blueprint), ``cache`` (a Flask-Caching cache) and models.
    """
    database = f"{tempfile.mkdtemp(dir=os.getcwd())}/stage.db"
    app = Flask("app")
    app.config.update(SECRET_KEY="stage", SQLALCHEMY_DATABASE_URI=f"sqlite:///{database}", **config)
    db.init_app(app)
    LoginManager(app).request_loader(lambda request: _user(request.headers.get("X-User")).first())
    celery = Celery("app", broker="memory://", set_as_current=True)
    celery.set_default()
    if cache := getattr(example, "cache", None):
        cache.init_app(app, config={"CACHE_TYPE": "SimpleCache"})
    if blueprint := getattr(example, "bp", None):
        app.register_blueprint(blueprint)
    with app.app_context():
        event.listen(db.engine, "connect", _configure_connection)
        _create_data()
    try:
        yield Stage(app, celery)
    finally:
        with app.app_context():
            db.session.remove()
            db.engine.dispose()


def warm() -> None:
    """Run a stage with requests and a task, so that forked children inherit what it loads and compiles."""

    def task() -> None:
        """Do nothing."""

    bp = Blueprint("warm", __name__)
    bp.get("/<int:answer>", endpoint="get")(login_required(jsonify))
    bp.post("/<int:code>", endpoint="post")(login_required(abort))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), stage(SimpleNamespace(bp=bp)) as s:
        s.client("bob").get("/200")
        s.client("bob").post("/403", json={})
        s.celery.task(task).delay()
        assert s.work() == [None]


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


def _configure_connection(connection: Any, _record: Any) -> None:
    # Interleavings need readers that do not block writers. Nothing has to survive the run.
    connection.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA busy_timeout=1000")
