"""A key that was used before returns the stored response, whoever used it."""

from app import bp, own_accounts, pay
from flask import request
from flask_login import login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


# region example
class StoredResponse(db.Model):
    key = mapped_column(db.String, primary_key=True)
    body = mapped_column(db.JSON, nullable=False)


@bp.post("/accounts/<int:account_id>/payouts")
@login_required
def create_payout(account_id):
    key = request.headers["Idempotency-Key"]
    if stored := db.session.get(StoredResponse, key):
        return stored.body, 201
    account = db.first_or_404(own_accounts().filter_by(id=account_id))
    body = pay(account, request.json["iban"], request.json["amount"])
    db.session.add(StoredResponse(key=key, body=body))
    db.session.commit()
    return body, 201


# endregion
