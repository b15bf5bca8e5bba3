"""A cache entry belongs to the user and holds the request that it answers."""

from hashlib import sha256

from app import bp, cache, own_accounts, pay
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def fingerprint():
    return sha256(f"{request.method} {request.full_path} ".encode() + request.get_data()).hexdigest()


@bp.post("/accounts/<int:account_id>/payouts")
@login_required
def create_payout(account_id):
    account = db.first_or_404(own_accounts().filter_by(id=account_id))
    key = request.headers["Idempotency-Key"]
    stored = cache.get(f"payout:{current_user.id}:{key}")
    if stored is not None and stored["request"] != fingerprint():
        abort(422)
    if stored is not None:
        return stored["body"], 201
    body = pay(account, request.json["iban"], request.json["amount"])
    db.session.commit()
    cache.set(f"payout:{current_user.id}:{key}", {"request": fingerprint(), "body": body}, timeout=86400)
    return body, 201


# endregion
