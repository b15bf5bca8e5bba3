"""A key belongs to its user and to one request, and is looked up after the check of the account."""

from hashlib import sha256

from app import bp, own_accounts, pay
from flask import abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


# region example
class StoredResponse(db.Model):
    user_id = mapped_column(db.Integer, primary_key=True)
    key = mapped_column(db.String, primary_key=True)
    request = mapped_column(db.String, nullable=False)
    body = mapped_column(db.JSON, nullable=False)


# region template
def fingerprint():  # before request.form
    return sha256(f"{request.method} {request.full_path} ".encode() + request.get_data()).hexdigest()


def stored_response(key):
    stored = db.session.get(StoredResponse, (current_user.id, key))
    if stored is not None and stored.request != fingerprint():
        abort(422)
    return stored


# endregion


@bp.post("/accounts/<int:account_id>/payouts")
@login_required
def create_payout(account_id):
    account = db.first_or_404(own_accounts().filter_by(id=account_id))
    key = request.headers["Idempotency-Key"]
    if stored := stored_response(key):
        return stored.body, 201
    body = pay(account, request.json["iban"], request.json["amount"])
    db.session.add(StoredResponse(user_id=current_user.id, key=key, request=fingerprint(), body=body))
    db.session.commit()
    return body, 201


# endregion
