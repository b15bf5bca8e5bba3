"""Documents whose readers are decided by relations, as in Zanzibar. A version of the code changes and checks relations.

A revision is a change of relations. To be fast, a check uses a revision that is some seconds old, unless the caller
demands a newer one or all changes. Readers can be guests, so only relations count, and not the reader's organization.
"""

import time

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db

STALENESS = 5.0  # seconds


class Revision(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    at = mapped_column(db.Float, nullable=False)


class Relation(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    object = mapped_column(db.String, nullable=False)
    name = mapped_column(db.String, nullable=False)
    subject = mapped_column(db.String, nullable=False)
    added = mapped_column(db.Integer, nullable=False)  # the revisions
    removed = mapped_column(db.Integer)


class Change(db.Model):
    """A revision that the application has written for an organization."""

    revision = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer, nullable=False)


class Group(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer, nullable=False)


class Folder(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer, nullable=False)


class Paper(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    title = mapped_column(db.String, nullable=False)
    text = mapped_column(db.String, nullable=False)
    folder_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    token = mapped_column(db.Integer)  # a revision, for versions that keep one with the content


bp = Blueprint("papers", __name__)


def write_relations(add=(), remove=()):
    """Write tuples (object, name, subject), where the subject None removes all, and return the revision."""
    revision = Revision(at=time.time())
    db.session.add(revision)
    db.session.flush()
    for object, name, subject in remove:
        old = db.update(Relation).filter_by(object=object, name=name, removed=None).values(removed=revision.id)
        db.session.execute(old.filter_by(subject=subject) if subject else old)
    for object, name, subject in add:
        db.session.add(Relation(object=object, name=name, subject=subject, added=revision.id))
    return revision.id


def check_relations(user_id, paper_id, at_least=None, fully_consistent=False):
    """Return whether the user can read the paper, as of a revision that is not older than ``at_least``."""
    revisions = db.select(db.func.max(Revision.id))
    if not fully_consistent:
        revisions = revisions.where(Revision.at <= time.time() - STALENESS)
    revision = max(db.session.scalar(revisions) or 0, at_least or 0)

    def subjects(object, name):
        current = db.or_(Relation.removed.is_(None), Relation.removed > revision)
        related = db.select(Relation.subject).filter_by(object=object, name=name)
        return db.session.scalars(related.where(Relation.added <= revision, current)).all()

    readers = [reader for folder in subjects(f"paper:{paper_id}", "parent") for reader in subjects(folder, "reader")]
    user = f"user:{user_id}"
    return user in readers or any(user in subjects(reader, "member") for reader in readers)


def managed(model, id):
    """Return an object of the administrator's organization, and lock it."""
    if current_user.role != "admin" or current_user.organization_id is None:
        abort(403)
    return db.first_or_404(
        db.select(model).filter_by(id=id, organization_id=current_user.organization_id).with_for_update()
    )


def created(object):
    if current_user.role != "admin" or current_user.organization_id is None:
        abort(403)
    object.organization_id = current_user.organization_id
    db.session.add(object)
    db.session.flush()
    return object.id


@bp.post("/groups")
@login_required
def create_group():
    group = created(Group())
    users = db.session.scalars(db.select(User).where(User.name.in_(request.get_json()["members"])))
    write_relations(add=[(f"group:{group}", "member", f"user:{user.id}") for user in users])
    db.session.commit()
    return {"id": group}, 201


@bp.post("/folders")
@login_required
def create_folder():
    folder = created(Folder())
    readers = [f"user:{current_user.id}"]
    if "group" in request.get_json():
        readers.append(f"group:{managed(Group, request.get_json()['group']).id}")
    write_relations(add=[(f"folder:{folder}", "reader", reader) for reader in readers])
    db.session.commit()
    return {"id": folder}, 201


@bp.post("/papers")
@login_required
def create_paper():
    body = request.get_json()
    folder = managed(Folder, body["folder"])
    paper = created(Paper(title=body["title"], text=body["text"], folder_id=folder.id))
    write_relations(add=[(f"paper:{paper}", "parent", f"folder:{folder.id}")])
    db.session.commit()
    return {"id": paper}, 201


def state_papers():
    papers = db.session.scalars(db.select(Paper).order_by(Paper.id))
    return [[paper.title, paper.text, paper.folder_id] for paper in papers]
