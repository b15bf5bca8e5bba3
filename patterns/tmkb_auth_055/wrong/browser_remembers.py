"""The browser remembers clients and redirect URIs, for whoever uses it next."""

import secrets

from app import bp, consent_page, deliver, requested, to_upstream
from flask import abort, request, session


@bp.get("/authorize")
def authorize():
    wish = requested()
    if wish in session.get("remembered", []):
        return approve(wish)
    session["asked"] = {"wish": wish, "ticket": secrets.token_urlsafe()}
    return consent_page(**session["asked"])


def approve(wish):
    session["approved"] = {"wish": wish, "state": secrets.token_urlsafe()}
    return to_upstream(session["approved"]["state"])


@bp.post("/consent")
def consent():
    asked = session.pop("asked", {})
    if request.form["ticket"] != asked.get("ticket"):
        abort(403)
    session["remembered"] = [*session.get("remembered", []), asked["wish"]]
    return approve(asked["wish"])


@bp.get("/callback")
def callback():
    approved = session.pop("approved", {})
    if request.args["state"] != approved.get("state"):
        abort(403)
    return deliver(approved["wish"], request.args["code"])
