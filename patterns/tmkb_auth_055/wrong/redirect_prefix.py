"""The redirect URI has to begin like a registered one."""

import secrets

from app import bp, client_named, consent_page, deliver, to_upstream
from flask import abort, request, session


@bp.get("/authorize")
def authorize():
    client = client_named(request.args["client_id"])
    redirect_uri = request.args["redirect_uri"]
    if not redirect_uri.startswith(tuple(client.redirect_uris)):
        abort(400)
    wish = {"client_id": client.id, "redirect_uri": redirect_uri}
    session["asked"] = {"wish": wish, "ticket": secrets.token_urlsafe()}
    return consent_page(**session["asked"])


@bp.post("/consent")
def consent():
    asked = session.pop("asked", {})
    if request.form["ticket"] != asked.get("ticket"):
        abort(403)
    session["approved"] = {"wish": asked["wish"], "state": secrets.token_urlsafe()}
    return to_upstream(session["approved"]["state"])


@bp.get("/callback")
def callback():
    approved = session.pop("approved", {})
    if request.args["state"] != approved.get("state"):
        abort(403)
    return deliver(approved["wish"], request.args["code"])
