from datetime import datetime

from sqlalchemy import JSON, ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from worklane.clock import now
from worklane.extensions import db


class Job(db.Model):
    """Work for the worker; see worklane.queue."""

    __tablename__ = "jobs"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    arguments: Mapped[dict] = mapped_column(JSON)
    status: Mapped[str] = mapped_column(default="queued")  # or done, failed
    error: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(default=now)


class OutgoingMail(db.Model):
    """Mail that the mail gateway picks up."""

    __tablename__ = "outgoing_mails"

    id: Mapped[int] = mapped_column(primary_key=True)
    recipient: Mapped[str]
    subject: Mapped[str]
    body: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(default=now)


class Notification(db.Model):
    __tablename__ = "notifications"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"))
    text: Mapped[str]
    read_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(default=now)


class Export(db.Model):
    __tablename__ = "exports"

    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"))
    requester_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    kind: Mapped[str]
    status: Mapped[str] = mapped_column(default="queued")  # or ready
    content: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = mapped_column(default=now)


class SearchEntry(db.Model):
    """A searchable text. kind is document or task, object_id the id in its table."""

    __tablename__ = "search_entries"
    __table_args__ = (UniqueConstraint("kind", "object_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"))
    kind: Mapped[str]
    object_id: Mapped[int]
    title: Mapped[str]
    text: Mapped[str]


class Passage(db.Model):
    """A paragraph of a document with its terms, for questions in plain words."""

    __tablename__ = "passages"

    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"), index=True)
    document_id: Mapped[int] = mapped_column(ForeignKey("documents.id"))
    text: Mapped[str]
    terms: Mapped[list[str]] = mapped_column(JSON)


class AuditEntry(db.Model):
    __tablename__ = "audit_entries"

    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int | None] = mapped_column(ForeignKey("organizations.id"))
    actor_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    action: Mapped[str]
    details: Mapped[dict] = mapped_column(JSON, default=dict)
    created_at: Mapped[datetime] = mapped_column(default=now)


class Setting(db.Model):
    __tablename__ = "settings"
    __table_args__ = (UniqueConstraint("organization_id", "key"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"))
    key: Mapped[str]
    value: Mapped[str]
