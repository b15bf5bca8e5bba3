from flask import Blueprint, abort, g, jsonify
from flask_login import current_user, login_required
from sqlalchemy import select

from worklane import serializers
from worklane.clock import now
from worklane.extensions import db
from worklane.models import Notification
from worklane.requests import page

blueprint = Blueprint("notifications", __name__, url_prefix="/notifications")


@blueprint.get("")
@login_required
def index():
    query = select(Notification).filter_by(user_id=current_user.id, organization_id=g.organization.id)
    rows = db.session.scalars(page(query.order_by(Notification.id.desc())))
    return jsonify([serializers.notification(each) for each in rows])


@blueprint.post("/<int:notification_id>/read")
@login_required
def read(notification_id):
    notification = db.session.get(Notification, notification_id)
    if notification is None:
        abort(404)
    notification.read_at = now()
    db.session.commit()
    return jsonify(serializers.notification(notification))


@blueprint.post("/read")
@login_required
def read_all():
    query = select(Notification).filter_by(user_id=current_user.id, read_at=None)
    for notification in db.session.scalars(query):
        notification.read_at = now()
    db.session.commit()
    return "", 204
