from datetime import datetime

from flask_login import UserMixin
from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from worklane.clock import now
from worklane.extensions import db

ROLES = ("guest", "member", "admin", "owner")


class Organization(db.Model):
    __tablename__ = "organizations"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    slug: Mapped[str] = mapped_column(unique=True)
    plan: Mapped[str] = mapped_column(default="team")
    created_at: Mapped[datetime] = mapped_column(default=now)

    memberships: Mapped[list["Membership"]] = relationship(back_populates="organization")


class User(UserMixin, db.Model):
    __tablename__ = "users"

    id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(unique=True)
    name: Mapped[str]
    password_hash: Mapped[str]
    timezone: Mapped[str] = mapped_column(default="UTC")
    is_staff: Mapped[bool] = mapped_column(default=False)
    disabled_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(default=now)

    memberships: Mapped[list["Membership"]] = relationship(back_populates="user", order_by="Membership.id")

    @property
    def is_active(self):
        return self.disabled_at is None

    def membership_in(self, organization_id):
        return next((each for each in self.memberships if each.organization_id == organization_id), None)


class Membership(db.Model):
    """A user in an organization. hourly_rate is what the organization calculates internally, in cents."""

    __tablename__ = "memberships"
    __table_args__ = (UniqueConstraint("organization_id", "user_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    role: Mapped[str] = mapped_column(default="member")
    job_title: Mapped[str] = mapped_column(default="")
    hourly_rate: Mapped[int] = mapped_column(default=0)
    joined_at: Mapped[datetime] = mapped_column(default=now)

    organization: Mapped[Organization] = relationship(back_populates="memberships")
    user: Mapped[User] = relationship(back_populates="memberships")

    @property
    def is_admin(self):
        return self.role in ("admin", "owner")


class Team(db.Model):
    __tablename__ = "teams"

    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"))
    name: Mapped[str]
    lead_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))

    members: Mapped[list["TeamMember"]] = relationship(back_populates="team", cascade="all, delete-orphan")


class TeamMember(db.Model):
    __tablename__ = "team_members"
    __table_args__ = (UniqueConstraint("team_id", "user_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    team_id: Mapped[int] = mapped_column(ForeignKey("teams.id"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))

    team: Mapped[Team] = relationship(back_populates="members")
    user: Mapped[User] = relationship()
