"""The watchers are checked when the job is queued, and the job sends what was decided then."""

from app import Watch, bp, post_json, store_comment, view
from celery import shared_task
from flask_login import login_required

from tmkb.authoring.proofs.stage import User, db


@bp.post("/tickets/<int:ticket_id>/comments")
@login_required
def add_comment(ticket_id):
    comment = store_comment(ticket_id)
    watches = db.select(Watch.url, User).join(User, User.id == Watch.user_id)
    for url, user in db.session.execute(watches.where(Watch.ticket_id == ticket_id)).all():
        if body := view(user, comment):
            notify_watcher.delay(url, body)
    return {"id": comment.id}, 201


@shared_task
def notify_watcher(url, body):
    post_json(url, body)
