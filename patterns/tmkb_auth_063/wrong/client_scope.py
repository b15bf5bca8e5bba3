"""The client names the user in front of the key."""

from app import bp, own_accounts, pay
from flask import request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class StoredResponse(db.Model):
    key = mapped_column(db.String, primary_key=True)
    body = mapped_column(db.JSON, nullable=False)


@bp.post("/accounts/<int:account_id>/payouts")
@login_required
def create_payout(account_id):
    account = db.first_or_404(own_accounts().filter_by(id=account_id))
    key = f"{request.headers.get('X-Client', current_user.id)}:{request.headers['Idempotency-Key']}"
    if stored := db.session.get(StoredResponse, key):
        return stored.body, 201
    body = pay(account, request.json["iban"], request.json["amount"])
    db.session.add(StoredResponse(key=key, body=body))
    db.session.commit()
    return body, 201
