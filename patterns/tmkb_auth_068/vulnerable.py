"""A session is enough for every change of the account."""

from app import bp, my_account, new_key
from flask import request
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.put("/email")
@login_required
def change_email():
    email = request.get_json()["email"]
    my_account().email = email
    db.session.commit()
    return "", 204


@bp.patch("/profile")
@login_required
def change_profile():
    account, body = my_account(), request.get_json()
    account.name = body.get("name", account.name)
    if "email" in body:
        account.email = body["email"]
    db.session.commit()
    return "", 204


@bp.put("/payout")
@login_required
def change_payout():
    iban = request.get_json()["iban"]
    my_account().iban = iban
    db.session.commit()
    return "", 204


@bp.post("/api-keys")
@login_required
def create_key():
    return new_key()


@bp.delete("/account")
@login_required
def close_account():
    my_account().closed = True
    db.session.commit()
    return "", 204


# endregion
