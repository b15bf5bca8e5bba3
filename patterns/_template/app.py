"""Documents of organizations. A version of the code shows one document."""

# The application around the versions of the code: models, common routes, and functions for attacks.yaml.

from flask import Blueprint

from tmkb.authoring.proofs.stage import Document, db

bp = Blueprint("documents", __name__)


def state_titles():
    return db.session.scalars(db.select(Document.title).order_by(Document.id)).all()
