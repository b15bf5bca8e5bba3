"""A small multi-tenant FastAPI application around an idiom. Requires the extra ``proofs``.

It has the organizations and users of the stage of the proofs. An application defines ``router``, and models that
inherit from `Base`. It can define functions ``event_NAME(db, …)`` and ``state_NAME(db)``, and ``configure(app)``, which
adds middleware and exception handlers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Annotated, Any

import httpx2
from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException
from fastapi.routing import APIRoute
from sqlalchemy import ForeignKey, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker
from starlette.types import ASGIApp, Receive, Scope, Send

from tmkb.authoring.play import Response
from tmkb.authoring.proofs import traces
from tmkb.authoring.stacks import stage

config: dict[str, Any] = {}  # `config` of attacks.yaml


class Base(DeclarativeBase):
    """The base class of all models."""


class Organization(Base):
    """A tenant."""

    __tablename__ = "organizations"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class User(Base):
    """A user who signs in. Without an organization after leaving it."""

    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    role: Mapped[str] = mapped_column(default="member")
    organization_id: Mapped[int | None] = mapped_column(ForeignKey("organizations.id"))


class Document(Base):
    """A document of one user and one organization."""

    __tablename__ = "documents"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    state: Mapped[str] = mapped_column(default="new")
    owner_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"))


SessionLocal = sessionmaker()


def get_db() -> Iterator[Session]:
    """Open a session for one request."""
    with SessionLocal() as session:
        yield session


Db = Annotated[Session, Depends(get_db)]


def optional_user(db: Db, x_user: Annotated[str | None, Header()] = None) -> User | None:
    """Return the user of the header X-User; None for an anonymous request."""
    return db.scalar(select(User).where(User.name == x_user))


def current_user(user: Annotated[User | None, Depends(optional_user)]) -> User:
    """Return the user who is signed in; refuse anonymous requests."""
    if user is None:
        raise HTTPException(401)
    return user


OptionalUser = Annotated[User | None, Depends(optional_user)]
CurrentUser = Annotated[User, Depends(current_user)]


class Stage(stage.Stage):
    """An application in this process, with a SQLite database in the current folder."""

    def __init__(self, app: ModuleType, settings: Mapping[str, Any]) -> None:
        super().__init__(app)
        config.update(settings)
        self._engine = engine = create_engine(f"sqlite:///{self.database}")
        SessionLocal.configure(bind=engine)
        Base.metadata.create_all(engine)
        with SessionLocal.begin() as db:
            db.add_all(Organization(id=id_, name=name) for id_, name in stage.ORGANIZATIONS)
            db.add_all(User(id=id_, name=name, role=role, organization_id=of) for id_, name, role, of in stage.USERS)
            db.add_all(
                Document(id=id_, title=title, owner_id=owner, organization_id=of)
                for id_, title, owner, of in stage.DOCUMENTS
            )
        self._asgi = FastAPI()
        if hasattr(app, "configure"):
            app.configure(self._asgi)
        self._asgi.include_router(app.router)

    def disconnect(self) -> None:
        """Close all connections to the database."""
        self._engine.dispose()

    def copied(self, cookies: Any) -> Any:
        """Return a copy of the cookies of a client."""
        return httpx2.Cookies(cookies)

    def roots(self) -> list[Any]:
        """Return the objects through which a case can leave something behind, besides the module of the application."""
        layers = [vars(each) for each in _layers(self._asgi.middleware_stack)]
        state = [config, vars(self._asgi), vars(self._asgi.router), vars(self._asgi.state), SessionLocal.kw]
        return [*super().roots(), *state, *layers, *_calls(self._asgi.routes)]

    def signature(self) -> tuple[int, ...]:
        """Return numbers that differ if a case has left a thread, or a listener for events of sessions or engines."""
        return *super().signature(), traces.sql_listeners()

    def send(self, actor: str, method: str, path: str, parts: Mapping[str, Any]) -> Response:
        """Send a request as ``actor``; anonymous sends no user."""
        if actor not in self.clients:
            headers = {"User-Agent": "testclient"} | ({} if actor == stage.ANONYMOUS else {"X-User": actor})
            server = httpx2.ASGITransport(_Server(self._asgi, self.crashes), raise_app_exceptions=False)
            self.clients[actor] = httpx2.AsyncClient(
                transport=server, base_url="http://testserver", headers=headers, trust_env=False
            )
        options: dict[str, Any] = {"json": parts["json"]} if "json" in parts else {}
        options["headers"] = {name: str(value).encode() for name, value in parts.get("headers", {}).items()}
        if "data" in parts:
            options["content"] = parts["data"]
        if "form" in parts:
            options["data"] = parts["form"]
        if "files" in parts:
            files = parts["files"].items()
            options["files"] = {key: (file["name"], file["content"].encode(), file["type"]) for key, file in files}
        answer = asyncio.run(self.clients[actor].request(method, path, **options))
        return Response(answer.status_code, answer.text, dict(answer.headers))

    def event(self, name: str, values: Mapping[str, Any]) -> Any:
        """Call ``event_NAME`` of the application with a session, or one of the common events."""
        function: Callable[..., Any] = getattr(self.app, f"event_{name}", None) or _EVENTS[name]
        with SessionLocal.begin() as db:
            return function(db, **values)

    def state(self, name: str) -> Any:
        """Return the result of ``state_NAME`` of the application."""
        with SessionLocal() as db:
            return getattr(self.app, f"state_{name}")(db)

    def run_job(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call ``function`` with a session of its own, which is its first argument."""
        with SessionLocal() as db:
            return function(db, *args, **kwargs)


def warm() -> None:
    """Serve requests in the current folder, so that forked processes inherit what the libraries load and compile."""
    app = ModuleType("app")
    setattr(app, "router", router := APIRouter())  # noqa: B010  # as a module defines it

    @router.post("/{number}")
    def post(number: int, body: dict[str, str], user: CurrentUser) -> None:
        """Do nothing."""

    target = Stage(app, {})
    target.send("bob", "POST", "/1", {"json": {"name": "Acme"}})
    target.event("leave", {"user": "bob"})
    target.disconnect()


class _Server:
    """Middleware that answers HEAD as Flask and Django do, like GET, and notes exceptions. FastAPI refuses HEAD."""

    def __init__(self, app: ASGIApp, crashes: list[str]) -> None:
        self._app = app
        self._crashes = crashes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") == "HEAD":
            scope = {**scope, "method": "GET"}
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            self._crashes.append(stage.described(error))
            raise


def _layers(app: ASGIApp | None) -> Iterator[ASGIApp]:
    """Yield the middleware around ``app`` that has been built, from outside to inside."""
    while app is not None:
        yield app
        app = getattr(app, "app", None)


def _calls(routes: Iterable[Any]) -> Iterator[Any]:
    """Yield what requests to ``routes`` call: endpoints and dependencies."""
    todo = [route.dependant for route in routes if isinstance(route, APIRoute)]
    while todo:
        dependant = todo.pop()
        todo += dependant.dependencies
        yield dependant.call


def _account(db: Session, user: str) -> User:
    return db.scalars(select(User).where(User.name == user)).one()


def _leave(db: Session, user: str) -> None:
    _account(db, user).organization_id = None


def _join(db: Session, user: str, organization: str, role: str = "member") -> None:
    account = _account(db, user)
    account.role = role
    account.organization_id = db.scalars(select(Organization.id).where(Organization.name == organization)).one()


def _set_role(db: Session, user: str, role: str) -> None:
    _account(db, user).role = role


def _delete_user(db: Session, user: str) -> None:
    db.delete(_account(db, user))


# Events of every application; an application defines others as functions `event_NAME`.
_EVENTS: dict[str, Callable[..., Any]] = {
    "leave": _leave,
    "join": _join,
    "set_role": _set_role,
    "delete_user": _delete_user,
}
