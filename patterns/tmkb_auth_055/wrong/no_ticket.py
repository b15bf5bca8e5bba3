"""The form is not protected against requests that other sites send."""

import secrets

from app import bp, consent_page, deliver, requested, to_upstream
from flask import abort, request, session


@bp.get("/authorize")
def authorize():
    session["asked"] = {"wish": requested(), "ticket": secrets.token_urlsafe()}
    return consent_page(**session["asked"])


@bp.post("/consent")
def consent():
    asked = session.pop("asked", {})
    if not asked:
        abort(403)
    session["approved"] = {"wish": asked["wish"], "state": secrets.token_urlsafe()}
    return to_upstream(session["approved"]["state"])


@bp.get("/callback")
def callback():
    approved = session.pop("approved", {})
    if request.args["state"] != approved.get("state"):
        abort(403)
    return deliver(approved["wish"], request.args["code"])
