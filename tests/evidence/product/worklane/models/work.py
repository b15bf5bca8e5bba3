from datetime import date, datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from worklane.clock import now
from worklane.extensions import db
from worklane.models.accounts import Organization, User


class Project(db.Model):
    __tablename__ = "projects"

    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"))
    name: Mapped[str]
    description: Mapped[str] = mapped_column(default="")
    visibility: Mapped[str] = mapped_column(default="organization")  # or private
    budget: Mapped[int] = mapped_column(default=0)
    owner_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    archived_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(default=now)

    organization: Mapped[Organization] = relationship()
    owner: Mapped[User] = relationship()
    members: Mapped[list["ProjectMember"]] = relationship(back_populates="project", cascade="all, delete-orphan")
    documents: Mapped[list["Document"]] = relationship(back_populates="project")
    tasks: Mapped[list["Task"]] = relationship(back_populates="project")


class ProjectMember(db.Model):
    __tablename__ = "project_members"
    __table_args__ = (UniqueConstraint("project_id", "user_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    role: Mapped[str] = mapped_column(default="editor")  # or viewer, manager

    project: Mapped[Project] = relationship(back_populates="members")
    user: Mapped[User] = relationship()


class Document(db.Model):
    __tablename__ = "documents"

    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"), index=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    author_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    title: Mapped[str]
    body: Mapped[str] = mapped_column(default="")
    status: Mapped[str] = mapped_column(default="draft")  # or published
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)
    deleted_at: Mapped[datetime | None]

    project: Mapped[Project] = relationship(back_populates="documents")
    author: Mapped[User] = relationship()
    versions: Mapped[list["DocumentVersion"]] = relationship(
        back_populates="document", order_by="DocumentVersion.number"
    )
    comments: Mapped[list["Comment"]] = relationship(back_populates="document", order_by="Comment.id")


class DocumentVersion(db.Model):
    """What a document contained before an edit."""

    __tablename__ = "document_versions"

    id: Mapped[int] = mapped_column(primary_key=True)
    document_id: Mapped[int] = mapped_column(ForeignKey("documents.id"))
    number: Mapped[int]
    title: Mapped[str]
    body: Mapped[str]
    editor_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    created_at: Mapped[datetime] = mapped_column(default=now)

    document: Mapped[Document] = relationship(back_populates="versions")


class Task(db.Model):
    __tablename__ = "tasks"

    id: Mapped[int] = mapped_column(primary_key=True)
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"), index=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    title: Mapped[str]
    details: Mapped[str] = mapped_column(default="")
    status: Mapped[str] = mapped_column(default="open")  # or done
    due_on: Mapped[date | None]
    external_id: Mapped[str | None]  # the number in the system that a task was imported from
    creator_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    assignee_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    document_id: Mapped[int | None] = mapped_column(ForeignKey("documents.id"))
    created_at: Mapped[datetime] = mapped_column(default=now)

    project: Mapped[Project] = relationship(back_populates="tasks")
    creator: Mapped[User] = relationship(foreign_keys=creator_id)
    assignee: Mapped[User | None] = relationship(foreign_keys=assignee_id)
    document: Mapped[Document | None] = relationship()
    comments: Mapped[list["Comment"]] = relationship(back_populates="task", order_by="Comment.id")


class Comment(db.Model):
    """On a document or on a task. Internal comments are not for guests."""

    __tablename__ = "comments"

    id: Mapped[int] = mapped_column(primary_key=True)
    document_id: Mapped[int | None] = mapped_column(ForeignKey("documents.id"))
    task_id: Mapped[int | None] = mapped_column(ForeignKey("tasks.id"))
    author_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    text: Mapped[str]
    internal: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime] = mapped_column(default=now)

    document: Mapped[Document | None] = relationship(back_populates="comments")
    task: Mapped[Task | None] = relationship(back_populates="comments")
    author: Mapped[User] = relationship()
