"""The browser remembers which user has approved which client and redirect URI in it."""

import secrets

from app import bp, consent_page, requested, send_code, spent, to_upstream
from flask import abort, request, session


# region example
@bp.get("/authorize")
def authorize():
    wish = requested()
    if wish in [approved for _, approved in session.get("remembered", [])]:
        return approve(wish, asked=False)
    return ask(wish)


def ask(wish):
    session["asked"] = {"wish": wish, "ticket": secrets.token_urlsafe()}
    return consent_page(**session["asked"])


def approve(wish, asked):
    session["approved"] = {"wish": wish, "asked": asked, "state": secrets.token_urlsafe()}
    return to_upstream(session["approved"]["state"])


@bp.post("/consent")
def consent():
    asked = session.pop("asked", {})
    if request.form["ticket"] != asked.get("ticket"):
        abort(403)
    return approve(asked["wish"], asked=True)


@bp.get("/callback")
def callback():
    approved = session.pop("approved", {})
    if request.args["state"] != approved.get("state"):
        abort(403)
    user_id, wish = spent(request.args["code"]).user_id, approved["wish"]
    remembered = session.get("remembered", [])
    if [user_id, wish] not in remembered:
        if not approved["asked"]:
            return ask(wish)
        session["remembered"] = [*remembered, [user_id, wish]]
    return send_code(wish, user_id)


# endregion
