"""For each watcher the notification asks anew what the screen would show them, and sends that or nothing."""

from celery import shared_task
from flask import Blueprint, abort, jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


class Ticket(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.Integer, nullable=False)


class Comment(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    ticket_id = db.Column(db.ForeignKey("ticket.id"), nullable=False)
    text = db.Column(db.String, nullable=False)
    minutes = db.Column(db.Integer, nullable=False)
    internal = db.Column(db.Boolean, nullable=False)
    ticket = db.relationship(Ticket)


class Watch(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    ticket_id = db.Column(db.ForeignKey("ticket.id"), nullable=False)
    user_id = db.Column(db.Integer, nullable=False)
    url = db.Column(db.String, nullable=False)


sent = []


def post_json(url, body):
    sent.append((url, body))


# region example
bp = Blueprint("comments", __name__)


def view(user, comment):
    if comment.ticket.organization_id != user.organization_id or (comment.internal and user.role == "guest"):
        return None
    shown = {"text": comment.text}
    return shown if user.role == "guest" else shown | {"minutes": comment.minutes}


@bp.get("/comments/<int:comment_id>")
@login_required
def show_comment(comment_id):
    return jsonify(view(current_user, db.get_or_404(Comment, comment_id)) or abort(404))


@bp.post("/tickets/<int:ticket_id>/comments")
@login_required
def add_comment(ticket_id):
    db.first_or_404(db.select(Ticket).filter_by(id=ticket_id, organization_id=current_user.organization_id))
    body = request.json
    comment = Comment(ticket_id=ticket_id, text=body["text"], minutes=body["minutes"], internal=body["internal"])
    db.session.add(comment)
    db.session.commit()
    notify_watchers.delay(comment.id)
    return jsonify(id=comment.id), 201


# region template
@shared_task
def notify_watchers(comment_id):
    comment = db.session.get(Comment, comment_id)
    for watch in db.session.scalars(db.select(Watch).filter_by(ticket_id=comment.ticket_id)).all():
        user = db.session.get(User, watch.user_id)
        body = user and view(user, comment)
        if body:
            post_json(watch.url, body)
    # endregion


# endregion
