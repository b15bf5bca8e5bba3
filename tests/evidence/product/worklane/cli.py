import click
from sqlalchemy import select
from werkzeug.security import generate_password_hash

from worklane import queue
from worklane.extensions import db
from worklane.models import Document, Membership, Organization, Task, User
from worklane.services import retrieval, search


def register(app):
    @app.cli.command("init-db")
    def init_db():
        """Create all tables."""
        db.create_all()

    @app.cli.command("worker")
    def worker():
        """Run the queued jobs."""
        for job in queue.run_pending():
            click.echo(f"{job.name} failed: {job.error}")

    @app.cli.command("reindex")
    def reindex():
        """Rebuild the search index and the passages."""
        for document in db.session.scalars(select(Document).where(Document.deleted_at.is_(None))):
            search.index_document(document)
            retrieval.index_document(document)
        for task in db.session.scalars(select(Task)):
            search.index_task(task)
        db.session.commit()

    @app.cli.command("create-organization")
    @click.argument("name")
    @click.argument("email")
    @click.password_option()
    def create_organization(name, email, password):
        """Create an organization and its owner."""
        organization = Organization(name=name, slug=name.lower().replace(" ", "-"))
        user = User(email=email, name=email.partition("@")[0])
        user.password_hash = generate_password_hash(password, app.config["PASSWORD_METHOD"])
        db.session.add_all([organization, user])
        db.session.flush()
        db.session.add(Membership(organization_id=organization.id, user_id=user.id, role="owner"))
        db.session.commit()
