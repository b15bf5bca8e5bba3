"""Numbers for the reports page. Results are cached because they read whole tables."""

from collections import Counter

from flask import current_app
from sqlalchemy import func, select

from worklane import cache
from worklane.extensions import db
from worklane.models import Document, Invoice, Project, Task, User
from worklane.policy import visible_projects


def workload(organization_id):
    """Open tasks for each person."""

    def make():
        query = (
            select(User.name, func.count(Task.id))
            .join(Task, Task.assignee_id == User.id)
            .where(Task.organization_id == organization_id, Task.status == "open")
            .group_by(User.id)
            .order_by(User.name)
        )
        return [{"name": name, "open": count} for name, count in db.session.execute(query)]

    return cache.get_or_make(f"workload:{organization_id}", current_app.config["REPORT_CACHE_SECONDS"], make)


def progress(membership):
    """Open and finished tasks of each project."""

    def make():
        rows = []
        for project in db.session.scalars(visible_projects(membership).order_by(Project.name)):
            count = Counter(task.status for task in project.tasks)
            rows.append({"id": project.id, "name": project.name, "open": count["open"], "done": count["done"]})
        return rows

    key = f"progress:{membership.organization_id}"
    return cache.get_or_make(key, current_app.config["REPORT_CACHE_SECONDS"], make)


def revenue(organization_id):
    """Invoiced amounts by month, in cents."""
    months = Counter()
    for invoice in db.session.scalars(select(Invoice).filter_by(organization_id=organization_id)):
        if invoice.status != "void":
            months[invoice.issued_on.strftime("%Y-%m")] += invoice.total
    return [{"month": month, "total": total} for month, total in sorted(months.items())]


def totals(organization_id):
    """The numbers on top of the reports page."""
    documents = select(func.count(Document.id)).filter_by(organization_id=organization_id, deleted_at=None)
    tasks = select(func.count(Task.id)).filter_by(organization_id=organization_id, status="open")
    return {"documents": db.session.scalar(documents), "open_tasks": db.session.scalar(tasks)}
