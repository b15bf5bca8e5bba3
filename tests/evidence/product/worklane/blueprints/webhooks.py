import secrets

from flask import Blueprint, abort, g, jsonify
from flask_login import current_user, login_required
from sqlalchemy import select

from worklane import serializers
from worklane.extensions import db
from worklane.models import Webhook, WebhookDelivery
from worklane.queue import enqueue
from worklane.requests import body
from worklane.services import webhooks

blueprint = Blueprint("webhooks", __name__, url_prefix="/webhooks")


@blueprint.get("")
@login_required
def index():
    query = select(Webhook).filter_by(organization_id=g.organization.id).order_by(Webhook.id)
    return jsonify([serializers.webhook(each) for each in db.session.scalars(query)])


@blueprint.post("")
@login_required
def create():
    if not g.membership.is_admin:
        abort(403)
    data = body("url", "events")
    if not data["url"].startswith("https://"):
        abort(400, "The URL must begin with https://")
    if unknown := [event for event in data["events"] if event not in webhooks.EVENTS]:
        abort(400, f"Unknown events: {unknown}")
    webhook = Webhook(
        organization_id=g.organization.id,
        creator_id=current_user.id,
        url=data["url"],
        secret=secrets.token_hex(16),
        events=data["events"],
    )
    db.session.add(webhook)
    db.session.commit()
    return jsonify(serializers.webhook(webhook) | {"secret": webhook.secret}), 201


@blueprint.patch("/<int:webhook_id>")
@login_required
def change(webhook_id):
    if not g.membership.is_admin:
        abort(403)
    webhook = db.session.get(Webhook, webhook_id)
    if webhook is None or webhook.organization_id != g.organization.id:
        abort(404)
    webhook.active = bool(body("active")["active"])
    db.session.commit()
    return jsonify(serializers.webhook(webhook))


@blueprint.get("/<int:webhook_id>/deliveries")
@login_required
def deliveries(webhook_id):
    if not g.membership.is_admin:
        abort(403)
    query = select(WebhookDelivery).filter_by(webhook_id=webhook_id).order_by(WebhookDelivery.id.desc())
    return jsonify([serializers.delivery(each) for each in db.session.scalars(query)])


@blueprint.post("/deliveries/<int:delivery_id>/retry")
@login_required
def retry(delivery_id):
    delivery = db.session.get(WebhookDelivery, delivery_id)
    if delivery is None or delivery.webhook.organization_id != g.organization.id:
        abort(404)
    delivery.delivered_at = None
    enqueue(webhooks.deliver, delivery_id=delivery.id)
    db.session.commit()
    return "", 202
