"""The proxy asks for each authorization, and only the browser in which the user approved can finish it."""

import secrets

from app import bp, consent_page, deliver, requested, to_upstream
from flask import abort, request, session


# region example
@bp.get("/authorize")
def authorize():
    session["asked"] = {"wish": requested(), "ticket": secrets.token_urlsafe()}
    return consent_page(**session["asked"])


# region template
@bp.post("/consent")
def consent():
    asked = session.pop("asked", {})
    if request.form["ticket"] != asked.get("ticket"):
        abort(403)
    session["approved"] = {"wish": asked["wish"], "state": secrets.token_urlsafe()}
    return to_upstream(session["approved"]["state"])


# endregion
@bp.get("/callback")
def callback():
    approved = session.pop("approved", {})
    if request.args["state"] != approved.get("state"):
        abort(403)
    return deliver(approved["wish"], request.args["code"])


# endregion
