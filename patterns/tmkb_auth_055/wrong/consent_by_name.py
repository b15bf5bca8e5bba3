"""The consent is remembered for the name of the client, which clients choose."""

import secrets

from app import bp, client_named, consent_page, deliver, requested, to_upstream
from flask import abort, request, session


@bp.get("/authorize")
def authorize():
    wish = requested()
    if client_named(wish["client_id"]).name in session.get("consented", []):
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
    session["consented"] = [*session.get("consented", []), client_named(asked["wish"]["client_id"]).name]
    return approve(asked["wish"])


@bp.get("/callback")
def callback():
    approved = session.pop("approved", {})
    if request.args["state"] != approved.get("state"):
        abort(403)
    return deliver(approved["wish"], request.args["code"])
