"""Boards of cards. A background job exports the cards that its user may read, and is followed by its id.

A version of the code shows the state, the result and the log of a job, and cancels it.
"""

from uuid import uuid4

from celery import shared_task
from flask import Blueprint
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db


class Board(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    name = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


class BoardMember(db.Model):
    board_id = mapped_column(db.Integer, primary_key=True)
    user_id = mapped_column(db.Integer, primary_key=True)


class Card(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    board_id = mapped_column(db.Integer, nullable=False)
    text = mapped_column(db.String, nullable=False)
    private_to = mapped_column(db.Integer)  # the user whose note this is; None for everybody on the board


class Job(db.Model):
    id = mapped_column(db.String, primary_key=True, default=lambda: str(uuid4()))
    board_id = mapped_column(db.Integer, nullable=False)
    user_id = mapped_column(db.Integer)  # None for jobs of the nightly schedule
    title = mapped_column(db.String, nullable=False)
    state = mapped_column(db.String, nullable=False, default="queued")
    result = mapped_column(db.JSON, nullable=False, default=list)


bp = Blueprint("jobs", __name__)


def readable_boards(user):
    """Return the select of the ids of the boards that the user may read."""
    of_organization = db.select(Board.id).filter_by(organization_id=user.organization_id)
    return of_organization.where(Board.id.in_(db.select(BoardMember.board_id).filter_by(user_id=user.id)))


@bp.post("/boards/<int:board_id>/export")
@login_required
def start_export(board_id):
    board_id = db.first_or_404(readable_boards(current_user).filter_by(id=board_id))
    return {"id": start(board_id, current_user.id)}, 202


def start(board_id, user_id):
    job = Job(board_id=board_id, user_id=user_id, title=f"Cards of {db.session.get(Board, board_id).name}")
    db.session.add(job)
    db.session.commit()
    export_cards.delay(job.id)
    return job.id


@shared_task
def export_cards(job_id):
    job = db.session.get(Job, job_id)
    if job.state != "queued":
        return
    cards = db.select(Card.text).filter_by(board_id=job.board_id).order_by(Card.id)
    if job.user_id is not None:
        user = db.session.get(User, job.user_id)
        if user is None or job.board_id not in db.session.scalars(readable_boards(user)).all():
            raise PermissionError
        cards = cards.where((Card.private_to == user.id) | Card.private_to.is_(None))
    job.state, job.result = "finished", list(db.session.scalars(cards))
    db.session.commit()


def event_boards():
    """Make a board of Acme with Bob as its only member, and one of Globex with Mallory."""
    db.session.add_all(
        [
            Board(id=1, name="Layoffs 2207", organization_id=1),
            Board(id=2, name="Launch", organization_id=2),
            BoardMember(board_id=1, user_id=2),
            BoardMember(board_id=2, user_id=3),
            Card(board_id=1, text="Close the Turku office"),
            Card(board_id=1, text="Offer Alice 4811", private_to=2),
            Card(board_id=2, text="Book the hall"),
        ]
    )


def event_invite(user_id, board_id):
    """Make a user a member of a board."""
    db.session.add(BoardMember(board_id=board_id, user_id=user_id))


def event_remove(user_id, board_id):
    """Remove a user from a board."""
    db.session.execute(db.delete(BoardMember).filter_by(board_id=board_id, user_id=user_id))


def event_sell(board_id, organization_id):
    """Move a board with its members to another organization."""
    db.session.get(Board, board_id).organization_id = organization_id


def event_start_nightly(board_id):
    """Start the export of all cards that the schedule makes for the backup."""
    return {"id": start(board_id, None)}


def state_jobs():
    return [[job.title, job.state] for job in db.session.scalars(db.select(Job).order_by(Job.title, Job.id))]
