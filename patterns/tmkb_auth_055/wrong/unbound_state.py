"""The proxy asks, and any browser can finish what was approved in another."""

import secrets

from app import bp, consent_page, deliver, packed, requested, to_upstream, unpacked
from flask import abort, request, session


@bp.get("/authorize")
def authorize():
    session["asked"] = {"wish": requested(), "ticket": secrets.token_urlsafe()}
    return consent_page(**session["asked"])


@bp.post("/consent")
def consent():
    asked = session.pop("asked", {})
    if request.form["ticket"] != asked.get("ticket"):
        abort(403)
    return to_upstream(packed(asked["wish"]))


@bp.get("/callback")
def callback():
    return deliver(unpacked(request.args["state"]), request.args["code"])
