"""The interface asks for the password and says so in a header."""

from app import bp, my_account, new_key
from flask import abort, request
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


def require_step_up(_action, _value=""):
    if request.headers.get("X-Confirmed") != "true":
        abort(403)


@bp.put("/email")
@login_required
def change_email():
    email = request.get_json()["email"]
    require_step_up("email", email)
    my_account().email = email
    db.session.commit()
    return "", 204


@bp.patch("/profile")
@login_required
def change_profile():
    account, body = my_account(), request.get_json()
    account.name = body.get("name", account.name)
    if "email" in body:
        require_step_up("email", body["email"])
        account.email = body["email"]
    db.session.commit()
    return "", 204


@bp.put("/payout")
@login_required
def change_payout():
    iban = request.get_json()["iban"]
    require_step_up("payout", iban)
    my_account().iban = iban
    db.session.commit()
    return "", 204


@bp.post("/api-keys")
@login_required
def create_key():
    require_step_up("api_key")
    return new_key()


@bp.delete("/account")
@login_required
def close_account():
    require_step_up("close")
    my_account().closed = True
    db.session.commit()
    return "", 204
