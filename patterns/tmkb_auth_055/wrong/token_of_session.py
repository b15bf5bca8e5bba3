"""The form has a token of the session instead of one for the request that was shown."""

import secrets

from app import bp, consent_page, deliver, requested, to_upstream
from flask import abort, request, session


@bp.get("/authorize")
def authorize():
    session.setdefault("ticket", secrets.token_urlsafe())
    session["wish"] = requested()
    return consent_page(session["wish"], session["ticket"])


@bp.post("/consent")
def consent():
    if request.form["ticket"] != session.get("ticket"):
        abort(403)
    session["approved"] = {"wish": session["wish"], "state": secrets.token_urlsafe()}
    return to_upstream(session["approved"]["state"])


@bp.get("/callback")
def callback():
    approved = session.pop("approved", {})
    if request.args["state"] != approved.get("state"):
        abort(403)
    return deliver(approved["wish"], request.args["code"])
