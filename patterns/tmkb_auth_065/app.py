"""Scans of documents, and messages that link to them. A version of the code serves what is derived from the scans."""

import re
import secrets

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Scan(db.Model):
    """A document that its owner or the whole team may read. Each content has a revision of its own."""

    id = mapped_column(db.Integer, primary_key=True)
    content = mapped_column(db.String, nullable=False)
    revision = mapped_column(db.String, nullable=False, default=secrets.token_hex)
    audience = mapped_column(db.String, nullable=False, default="owner")
    deleted = mapped_column(db.Boolean, nullable=False, default=False)
    owner_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


class Rendition(db.Model):
    """A thumbnail (modelled as the first words) or the recognized text of one revision of a scan."""

    key = mapped_column(db.String, primary_key=True, default=secrets.token_urlsafe)
    kind = mapped_column(db.String, nullable=False)
    content = mapped_column(db.String, nullable=False)
    scan_id = mapped_column(db.Integer, nullable=False)
    revision = mapped_column(db.String, nullable=False)
    audience = mapped_column(db.String, nullable=False)  # of the scan when it was rendered
    owner_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


class Message(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    text = mapped_column(db.String, nullable=False)
    scan_id = mapped_column(db.Integer)
    sender_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("scans", __name__)


def can_read(user):
    """Return the condition for scans that ``user`` may read."""
    return db.and_(
        Scan.organization_id == user.organization_id,
        ~Scan.deleted,
        db.or_(Scan.audience == "team", Scan.owner_id == user.id),
    )


def require_organization():
    if current_user.organization_id is None:
        abort(403)


@bp.post("/scans")
@login_required
def create_scan():
    require_organization()
    body = request.get_json()
    scan = Scan(
        content=body["content"],
        audience=body["audience"],
        owner_id=current_user.id,
        organization_id=current_user.organization_id,
    )
    db.session.add(scan)
    db.session.commit()
    return {"id": scan.id}, 201


@bp.get("/scans/<int:scan_id>")
@login_required
def show_scan(scan_id):
    scan = db.first_or_404(db.select(Scan).where(Scan.id == scan_id, can_read(current_user)))
    return {"content": scan.content}


@bp.put("/scans/<int:scan_id>")
@login_required
def change_scan(scan_id):
    scan = db.first_or_404(
        db.select(Scan).where(Scan.id == scan_id, Scan.owner_id == current_user.id, can_read(current_user))
    )
    body = request.get_json()
    if "audience" in body:
        scan.audience = body["audience"]
    if "content" in body:
        scan.content = body["content"]
        scan.revision = secrets.token_hex()
    db.session.commit()
    return "", 204


@bp.delete("/scans/<int:scan_id>")
@login_required
def delete_scan(scan_id):
    scan = db.first_or_404(
        db.select(Scan).where(Scan.id == scan_id, Scan.owner_id == current_user.id, can_read(current_user))
    )
    scan.deleted = True
    db.session.commit()
    return "", 204


@bp.post("/messages")
@login_required
def post_message():
    require_organization()
    text = request.get_json()["text"]
    link = re.search(r"/scans/(\d{1,9})\b", text)
    db.session.add(
        Message(
            text=text,
            scan_id=int(link[1]) if link else None,
            sender_id=current_user.id,
            organization_id=current_user.organization_id,
        )
    )
    db.session.commit()
    return "", 201


def messages_of(user):
    return db.session.scalars(
        db.select(Message).filter_by(organization_id=user.organization_id).order_by(Message.id)
    ).all()


def event_render(scan_id):
    """Make the renditions of a scan, as its worker does some time after each change. Older renditions stay."""
    scan = db.session.get(Scan, scan_id)
    contents = {"thumbnail": scan.content[:40], "text": scan.content}
    renditions = {
        kind: Rendition(
            kind=kind,
            content=content,
            scan_id=scan.id,
            revision=scan.revision,
            audience=scan.audience,
            owner_id=scan.owner_id,
            organization_id=scan.organization_id,
        )
        for kind, content in contents.items()
    }
    db.session.add_all(renditions.values())
    db.session.flush()
    return {kind: rendition.key for kind, rendition in renditions.items()}


def event_number(scan_id, revision):
    """Replace the random revision of a scan, as an import of scans with counted revisions does."""
    db.session.get(Scan, scan_id).revision = revision


def event_purge(scan_id):
    """Remove a scan from the database. Its renditions stay."""
    db.session.delete(db.session.get(Scan, scan_id))


def event_move(scan_id, organization_id):
    db.session.get(Scan, scan_id).organization_id = organization_id
