"""The notification sends each watcher what the page would show them at delivery, or nothing."""

from app import Comment, Watch, bp, post_json, store_comment, view
from celery import shared_task
from flask_login import login_required

from tmkb.authoring.proofs.stage import User, db


# region example
@bp.post("/tickets/<int:ticket_id>/comments")
@login_required
def add_comment(ticket_id):
    comment = store_comment(ticket_id)
    for watch_id in db.session.scalars(db.select(Watch.id).filter_by(ticket_id=ticket_id)).all():
        notify_watcher.delay(watch_id, comment.id)
    return {"id": comment.id}, 201


# region template
@shared_task
def notify_watcher(watch_id, comment_id):
    found = db.select(Watch.url, User, Comment).where(Watch.id == watch_id, Comment.id == comment_id)
    for url, user, comment in db.session.execute(found.join(User, User.id == Watch.user_id)):
        if body := view(user, comment):
            post_json(url, body)


# endregion
# endregion
