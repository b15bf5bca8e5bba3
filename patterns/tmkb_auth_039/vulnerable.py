"""The page shows each reader what they may see, but the notification sends everything to everyone who subscribed."""

from app import Comment, Watch, bp, post_json, store_comment
from celery import shared_task
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.post("/tickets/<int:ticket_id>/comments")
@login_required
def add_comment(ticket_id):
    comment = store_comment(ticket_id)
    notify_watchers.delay(comment.id)
    return {"id": comment.id}, 201


@shared_task
def notify_watchers(comment_id):
    comment = db.session.get(Comment, comment_id)
    watches = db.select(Watch).where(Watch.ticket_id == comment.ticket_id)
    for watch in db.session.scalars(watches).all():
        post_json(watch.url, {"text": comment.text, "minutes": comment.minutes})


# endregion
