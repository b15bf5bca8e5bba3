"""Files that organizations share among their members, on one disk. A version of the code stores and serves them."""

from pathlib import Path

from flask import Blueprint
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db

UPLOADS = Path.cwd() / "uploads"


class StoredFile(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    key = mapped_column(db.String)
    name = mapped_column(db.String)
    organization_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("files", __name__)


def event_old_record(key, organization_id):
    """Add a record that an earlier version of the application wrote."""
    db.session.add(StoredFile(key=key, name="old", organization_id=organization_id))


def state_files():
    files = sorted(path for path in UPLOADS.rglob("*") if path.is_file())
    return [[path.parent.name, path.read_text()] for path in files]


def state_records():
    return [[file.name, file.organization_id] for file in db.session.scalars(db.select(StoredFile))]
