"""A small multi-tenant Django project around an idiom. Requires the extra ``proofs``.

It has the organizations and users of the stage of the proofs. An application defines models and ``urlpatterns``. It can
define functions ``event_NAME(…)`` and ``state_NAME()``, and ``MIDDLEWARE``, a list of middleware that runs after the
authentication. As in an API, the response to a user who has to sign in is 401 instead of a redirect.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import django
from django.apps import AppConfig, apps
from django.conf import settings
from django.core import signals
from django.core.cache.backends import locmem
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.db.models import signals as model_signals
from django.dispatch import Signal
from django.http import HttpRequest, HttpResponse
from django.test.client import MULTIPART_CONTENT, Client
from django.urls import URLPattern, URLResolver, get_resolver

from tmkb.authoring.play import Response
from tmkb.authoring.stacks import stage

_LOGIN_URL = "/login"
_SIGNALS = [each for module in (signals, model_signals) for each in vars(module).values() if isinstance(each, Signal)]


class _Stage(AppConfig):  # type: ignore[misc]  # Django has no types
    name = __name__
    label = "stage"


class _Application(AppConfig):  # type: ignore[misc]  # as above
    """The app of the application under test, whose module is executed later."""

    name = label = "app"
    path = os.path.dirname(__file__)


settings.configure(
    SECRET_KEY="stage",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF="app",
    AUTH_USER_MODEL="stage.User",
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    LOGIN_URL=_LOGIN_URL,
    APPEND_SLASH=False,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ""}},
    MIDDLEWARE=[f"{__name__}.authentication"],
    INSTALLED_APPS=[
        "django.contrib.contenttypes",
        "django.contrib.auth",
        _Stage(__name__, sys.modules[__name__]),
        _Application("app", ModuleType("app")),
    ],
    LOGGING_CONFIG=None,
)
django.setup()

from django.contrib.auth.models import AnonymousUser  # noqa: E402  # needs the settings

from tmkb.authoring.stacks.django.models import Document, Organization, User  # noqa: E402  # as above

__all__ = ["Document", "Organization", "Stage", "User"]


def authentication(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Set ``request.user`` to the user of the header X-User, and answer 401 to a user who has to sign in."""

    def middleware(request: HttpRequest) -> HttpResponse:
        request.user = User.objects.filter(name=request.headers.get("X-User")).first() or AnonymousUser()
        response = get_response(request)
        signs_in = response.status_code == 302 and response["Location"].startswith(f"{_LOGIN_URL}?")
        return HttpResponse(status=401) if signs_in else response

    return middleware


class Stage(stage.Stage):
    """An application in this process, with a SQLite database in the current folder."""

    def __init__(self, app: ModuleType, config: Mapping[str, Any]) -> None:
        super().__init__(app)
        for name, value in config.items():
            setattr(settings, name, value)
        settings.MIDDLEWARE = [*settings.MIDDLEWARE, *getattr(app, "MIDDLEWARE", [])]
        connection.settings_dict["NAME"] = self.database
        with connection.schema_editor() as editor:
            for model in apps.get_models():
                editor.create_model(model)
        for id_, name in stage.ORGANIZATIONS:
            Organization.objects.create(id=id_, name=name)
        for id_, name, role, of in stage.USERS:
            User.objects.create(id=id_, name=name, role=role, organization_id=of)
        for id_, title, owner, of in stage.DOCUMENTS:
            Document.objects.create(id=id_, title=title, owner_id=owner, organization_id=of)
        signals.got_request_exception.connect(self._note_crash)

    def disconnect(self) -> None:
        """Close all connections to the database."""
        connection.close()

    def copied(self, cookies: Any) -> Any:
        """Return a copy of the cookies of a client."""
        return copy.deepcopy(cookies)

    def roots(self) -> list[Any]:
        """Return the objects through which a case can leave something behind, besides the module of the application."""
        settings_ = [vars(settings), vars(settings._wrapped)]
        chains = [client.handler._middleware_chain for client in self.clients.values()]
        views = [pattern.callback for pattern in _patterns(get_resolver())]
        caches = [locmem._caches, locmem._expire_info]
        return [*super().roots(), *settings_, *chains, *views, *caches, connection.execute_wrappers]

    def signature(self) -> tuple[int, ...]:
        """Return numbers that differ if a case has left a thread, or a receiver of a signal."""
        return *super().signature(), *(len(signal.receivers) for signal in _SIGNALS)

    def send(self, actor: str, method: str, path: str, parts: Mapping[str, Any]) -> Response:
        """Send a request as ``actor``; anonymous sends no user."""
        if actor not in self.clients:
            headers = {} if actor == stage.ANONYMOUS else {"X-User": actor}
            self.clients[actor] = Client(raise_request_exception=False, headers=headers)
        client = self.clients[actor]
        options: dict[str, Any] = {"headers": {key: str(value) for key, value in parts.get("headers", {}).items()}}
        if "json" in parts:
            options |= {
                "data": client._encode_json(parts["json"], "application/json"),
                "content_type": "application/json",
            }
        elif "data" in parts:
            options |= {"data": parts["data"], "content_type": "text/plain"}
        if "form" in parts or "files" in parts:
            files = parts.get("files", {}).items()
            uploads = {
                key: SimpleUploadedFile(each["name"], each["content"].encode(), each["type"]) for key, each in files
            }
            options["data"] = client._encode_data({**parts.get("form", {}), **uploads}, MULTIPART_CONTENT)
            options["content_type"] = MULTIPART_CONTENT
        answer = client.generic(method, path, **options)
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        return Response(answer.status_code, body.decode(errors="replace"), dict(answer.headers))

    def _note_crash(self, **_: object) -> None:
        if (error := sys.exception()) is not None:
            self.crashes.append(stage.described(error))

    def event(self, name: str, values: Mapping[str, Any]) -> Any:
        """Call ``event_NAME`` of the application, or one of the common events."""
        function: Callable[..., Any] = getattr(self.app, f"event_{name}", None) or _EVENTS[name]
        return function(**values)

    def state(self, name: str) -> Any:
        """Return the result of ``state_NAME`` of the application."""
        return getattr(self.app, f"state_{name}")()


def _patterns(resolver: URLResolver) -> Iterator[URLPattern]:
    for each in resolver.url_patterns:
        yield from _patterns(each) if isinstance(each, URLResolver) else [each]


def _leave(user: str) -> None:
    User.objects.filter(name=user).update(organization=None)


def _join(user: str, organization: str, role: str = "member") -> None:
    User.objects.filter(name=user).update(role=role, organization=Organization.objects.get(name=organization))


def _set_role(user: str, role: str) -> None:
    User.objects.filter(name=user).update(role=role)


def _delete_user(user: str) -> None:
    User.objects.filter(name=user).delete()


# Events of every application; an application defines others as functions `event_NAME`.
_EVENTS: dict[str, Callable[..., Any]] = {
    "leave": _leave,
    "join": _join,
    "set_role": _set_role,
    "delete_user": _delete_user,
}
