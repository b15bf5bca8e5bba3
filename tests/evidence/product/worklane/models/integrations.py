from datetime import datetime

from sqlalchemy import JSON, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column, relationship

from worklane.clock import now
from worklane.extensions import db
from worklane.models.accounts import Organization, User
from worklane.models.work import Document


class ApiKey(db.Model):
    """A key for scripts of an organization. Only the hash is stored."""

    __tablename__ = "api_keys"

    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"))
    creator_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    name: Mapped[str]
    key_hash: Mapped[str] = mapped_column(unique=True)
    scopes: Mapped[list[str]] = mapped_column(JSON, default=list)
    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id"))  # limits the key to one project
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(default=now)

    organization: Mapped[Organization] = relationship()
    creator: Mapped[User] = relationship()


class ShareLink(db.Model):
    """A link to one document for people without an account."""

    __tablename__ = "share_links"

    id: Mapped[int] = mapped_column(primary_key=True)
    document_id: Mapped[int] = mapped_column(ForeignKey("documents.id"))
    creator_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    token: Mapped[str] = mapped_column(unique=True)
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(default=now)

    document: Mapped[Document] = relationship()


class Webhook(db.Model):
    __tablename__ = "webhooks"

    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"))
    creator_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    url: Mapped[str]
    secret: Mapped[str]
    events: Mapped[list[str]] = mapped_column(JSON, default=list)
    active: Mapped[bool] = mapped_column(default=True)

    deliveries: Mapped[list["WebhookDelivery"]] = relationship(back_populates="webhook")


class WebhookDelivery(db.Model):
    __tablename__ = "webhook_deliveries"

    id: Mapped[int] = mapped_column(primary_key=True)
    webhook_id: Mapped[int] = mapped_column(ForeignKey("webhooks.id"))
    event: Mapped[str]
    payload: Mapped[dict] = mapped_column(JSON)
    delivered_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(default=now)

    webhook: Mapped[Webhook] = relationship(back_populates="deliveries")
