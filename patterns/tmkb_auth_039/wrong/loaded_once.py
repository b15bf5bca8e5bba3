"""Each watcher is checked at delivery, but all of them are loaded before the first delivery."""

from app import Comment, Watch, bp, post_json, store_comment, view
from celery import shared_task
from flask_login import login_required

from tmkb.authoring.proofs.stage import User, db


@bp.post("/tickets/<int:ticket_id>/comments")
@login_required
def add_comment(ticket_id):
    comment = store_comment(ticket_id)
    notify_watchers.delay(comment.id)
    return {"id": comment.id}, 201


@shared_task
def notify_watchers(comment_id):
    comment = db.session.get(Comment, comment_id)
    watches = db.select(Watch.url, User).join(User, User.id == Watch.user_id)
    for url, user in db.session.execute(watches.where(Watch.ticket_id == comment.ticket_id)).all():
        if body := view(user, comment):
            post_json(url, body)
