"""Deliveries to the systems of customers."""

import hashlib
import hmac
import json

from sqlalchemy import select

from worklane.clock import now
from worklane.extensions import db
from worklane.models import Webhook, WebhookDelivery
from worklane.queue import enqueue, job

EVENTS = ("document.published", "task.created", "task.done", "invoice.created")


def publish(organization_id, event, payload):
    """Queue a delivery for each webhook of the organization that wants the event. The caller commits."""
    for webhook in db.session.scalars(select(Webhook).filter_by(organization_id=organization_id, active=True)):
        if event in webhook.events:
            delivery = WebhookDelivery(webhook_id=webhook.id, event=event, payload=payload)
            db.session.add(delivery)
            db.session.flush()
            enqueue(deliver, delivery_id=delivery.id)


@job
def deliver(delivery_id):
    """Mark the delivery as handed to the gateway, which makes the request."""
    delivery = db.session.get(WebhookDelivery, delivery_id)
    delivery.delivered_at = now()


def signature(webhook, payload):
    body = json.dumps(payload, sort_keys=True).encode()
    return hmac.new(webhook.secret.encode(), body, hashlib.sha256).hexdigest()
