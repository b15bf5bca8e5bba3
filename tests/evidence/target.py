"""The product as a target of attacks. Imports `worklane`, so its folder has to be on the path."""

import importlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import time_machine
from sqlalchemy import inspect, select, text
from werkzeug.security import generate_password_hash

import worklane
from tmkb.authoring.play import Response, Rival
from worklane import queue
from worklane.extensions import db
from worklane.models import Document, Membership, Notification, Organization, OutgoingMail, Passage, Task, User

PEOPLE = {  # organization → user → role; Carol works in Globex unless she switches
    "globex": {"mallory": "admin", "victor": "member", "carol": "admin"},
    "acme": {
        "olivia": "owner",
        "alice": "admin",
        "bob": "member",
        "dave": "member",
        "erin": "guest",
        "carol": "member",
    },
    None: {"nina": None},
}
PASSWORD = "secret"
CONFIG = {"SQLALCHEMY_DATABASE_URI": "sqlite://", "PASSWORD_METHOD": "pbkdf2:sha256:1"}


class Product:
    """A new installation of the product, with two organizations and some work in memory."""

    def __init__(self) -> None:
        self.app = worklane.create_app(CONFIG)
        self.clients: dict[str, Any] = {}
        with self.app.app_context():
            db.create_all()
        self.ids = self._people()
        self._work()

    def send(self, actor: str, method: str, path: str, parts: Mapping[str, Any]) -> Response:
        """Send a request; users sign in at their first one."""
        answer = self._client(actor).open(path, method=method, json=parts.get("json"), headers=parts.get("headers"))
        return Response(answer.status_code, answer.text, dict(answer.headers))

    def event(self, name: str, values: Mapping[str, Any]) -> Any:
        """Change the world: world, request, run, or one of the columns that no endpoint sets."""
        return getattr(self, f"_event_{name}")(**values)

    def state(self, name: str) -> Any:
        """Return texts: `mails to NAME`, `notifications of NAME` or `passages of SLUG`."""
        what, _, who = name.rpartition(" ")
        with self.app.app_context():
            if what == "mails to":
                mails = db.session.scalars(select(OutgoingMail).filter_by(recipient=f"{who}@example.com"))
                return [[mail.subject, mail.body] for mail in mails]
            if what == "notifications of":
                user = select(User.id).filter_by(email=f"{who}@example.com").scalar_subquery()
                return list(db.session.scalars(select(Notification.text).where(Notification.user_id == user)))
            organization = select(Organization.id).filter_by(slug=who).scalar_subquery()
            return list(db.session.scalars(select(Passage.text).where(Passage.organization_id == organization)))

    def work(self) -> Response:
        """Run all queued jobs."""
        with self.app.app_context():
            return Response(raised=[job.error or "" for job in queue.run_pending()])

    def wait(self, seconds: float) -> None:
        """Advance the clock for the rest of the process."""
        time_machine.travel(datetime.now(UTC) + timedelta(seconds=seconds)).start()

    def during(self, after: str | None, rival: Rival) -> AbstractContextManager[None]:
        """Races are not part of the scenarios."""
        raise NotImplementedError("during")

    def _client(self, actor: str) -> Any:
        if actor not in self.clients:
            client = self.app.test_client()
            if actor != "anonymous":
                answer = client.post("/auth/login", json={"email": f"{actor}@example.com", "password": PASSWORD})
                assert answer.status_code == 200, answer.text
            self.clients[actor] = client
        return self.clients[actor]

    def _event_world(self) -> dict[str, int]:
        """Return the ids of what there is."""
        return self.ids

    def _work(self) -> None:
        """Create projects, documents and tasks."""
        ids = self.ids
        projects = {
            "website": ("bob", "Website", "Our new pages", "organization"),
            "intranet": ("bob", "Intranet", "For the staff", "organization"),
            "merger": ("alice", "Merger", "Buying a competitor", "private"),
            "rocket": ("mallory", "Rocket", "To the moon", "organization"),
        }
        for key, (by, name, description, visibility) in projects.items():
            project = {"name": name, "description": description, "visibility": visibility}
            ids[key] = self._create(by, "/projects", project)
        self._create("bob", f"/projects/{ids['website']}/members", {"user_id": ids["erin"], "role": "viewer"})
        self._create("alice", f"/projects/{ids['merger']}/members", {"user_id": ids["dave"]})
        documents = {
            "guide": ("bob", "intranet", "Intranet guide", "Coffee is on the third floor"),
            "handbook": ("bob", "website", "Handbook", "Opening hours are nine to five"),
            "draft": ("bob", "website", "Prices next year", "Twelve percent is how much prices rise"),
            "plan": ("alice", "merger", "Merger plan", "Initech does cost 90 million"),
            "spec": ("mallory", "rocket", "Rocket spec", "Kerosene and oxygen"),
        }
        for key, (by, project, title, body) in documents.items():
            ids[key] = self._create(by, f"/projects/{ids[project]}/documents", {"title": title, "body": body})
            if key != "draft":
                self._client(by).post(f"/documents/{ids[key]}/publish")
        tasks = {
            "homepage": ("bob", "website", "Draw the homepage"),
            "diligence": ("alice", "merger", "Check the books"),
            "engine": ("mallory", "rocket", "Build the engine"),
        }
        for key, (by, project, title) in tasks.items():
            ids[key] = self._create(by, f"/projects/{ids[project]}/tasks", {"title": title})

    def _people(self) -> dict[str, int]:
        ids = {}
        with self.app.app_context():
            password = generate_password_hash(PASSWORD, CONFIG["PASSWORD_METHOD"])
            users: dict[str, User] = {}
            for slug, people in PEOPLE.items():
                organization = Organization(name=slug.title(), slug=slug) if slug else None
                for name, role in people.items():
                    if name not in users:
                        users[name] = User(email=f"{name}@example.com", name=name.title(), password_hash=password)
                        db.session.add(users[name])
                    if organization:
                        db.session.add(Membership(organization=organization, user=users[name], role=role))
                db.session.flush()
                if organization:
                    ids[organization.slug] = organization.id
            ids |= {name: user.id for name, user in users.items()}
            db.session.commit()
        return ids

    def _create(self, actor: str, path: str, body: Mapping[str, Any]) -> int:
        answer = self._client(actor).post(path, json=body)
        assert answer.status_code == 201, f"POST {path}: {answer.status_code} {answer.text}"
        return int(answer.json["id"])

    def _event_request(self, by: str, send: str, json: Any = None) -> None:
        """Send a request whose response does not matter: what follows shows what came of it."""
        method, _, path = send.partition(" ")
        self.send(by, method, path, {"json": json} if json is not None else {})

    def _event_run(self, function: str, arguments: list[Any]) -> None:
        """Call a function of the product, as cron or an operator does."""
        module, _, name = function.partition(":")
        with self.app.app_context():
            getattr(importlib.import_module(module), name)(*arguments)
            db.session.commit()

    def _event_link_document(self, task: int, document: int) -> None:
        with self.app.app_context():
            assert db.session.get(Document, document)
            db.session.get_one(Task, task).document_id = document
            db.session.commit()

    def _event_external_id(self, task: int, value: str) -> None:
        with self.app.app_context():
            db.session.get_one(Task, task).external_id = value
            db.session.commit()

    def _event_empty(self, table: str, column: str) -> None:
        """Make a column empty, as it is for rows that are older than the column."""
        with self.app.app_context():
            assert column in [each["name"] for each in inspect(db.engine).get_columns(table)]
            db.session.execute(text(f"UPDATE {table} SET {column} = NULL"))
            db.session.commit()
