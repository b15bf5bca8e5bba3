"""A proxy between MCP clients that register themselves and an identity provider that knows only the proxy.

`/upstream/authorize` is the identity provider. It remembers which users have let the proxy sign them in, and asks them
once. A version of the code is the part of the proxy that starts an authorization and finishes it. PKCE is left out,
because whoever starts an authorization also chooses the challenge.
"""

import re
import secrets
from urllib.parse import urlsplit

from flask import Blueprint, abort, current_app, g, redirect, request
from flask_login import current_user, login_required
from itsdangerous import BadSignature, URLSafeSerializer
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db

REDIRECT_URI = re.compile(r"(https://[a-z0-9.-]+|http://(localhost|127\.0\.0\.1))(:\d+)?/[!-~]*")
MAIL = {1: "Alice's calendar", 2: "salary 4470", 3: "Globex menu"}


class Client(db.Model):
    id = mapped_column(db.String, primary_key=True, default=secrets.token_urlsafe)
    name = mapped_column(db.String, nullable=False)
    redirect_uris = mapped_column(db.JSON, nullable=False)


class UpstreamConsent(db.Model):
    user_id = mapped_column(db.Integer, primary_key=True)


class Code(db.Model):
    """A code of the identity provider for the proxy, or one of the proxy for a client."""

    code = mapped_column(db.String, primary_key=True, default=secrets.token_urlsafe)
    user_id = mapped_column(db.Integer, nullable=False)
    client_id = mapped_column(db.String)
    redirect_uri = mapped_column(db.String)


bp = Blueprint("proxy", __name__)


def new_code(**values):
    code = Code(**values)
    db.session.add(code)
    db.session.commit()
    return code.code


def spent(code):
    """Delete a code and return it; each works once."""
    row = db.get_or_404(Code, code)
    db.session.delete(row)
    db.session.commit()
    return row


@bp.post("/register")
def register():
    """Register a client, as anyone may (RFC 7591). Its redirect URIs have no user name that looks like a host."""
    if not all(REDIRECT_URI.fullmatch(str(uri)) for uri in request.get_json()["redirect_uris"]):
        abort(400)
    client = Client(**request.get_json())
    db.session.add(client)
    db.session.commit()
    return {"id": client.id}, 201


def client_named(client_id):
    return db.session.get(Client, client_id) or abort(400)


def requested():
    """Return what an authorization request asks for. Its redirect URI is one of those that are registered."""
    client = client_named(request.args["client_id"])
    if request.args["redirect_uri"] not in client.redirect_uris:
        abort(400)
    return {"client_id": client.id, "redirect_uri": request.args["redirect_uri"]}


def packed(wish):
    return URLSafeSerializer(current_app.secret_key).dumps(wish)


def unpacked(state):
    try:
        return URLSafeSerializer(current_app.secret_key).loads(state)
    except BadSignature:
        abort(400)


def to_upstream(state):
    return redirect(f"/upstream/authorize?client_id=the-proxy&state={state}")


def consent_page(wish, ticket):
    host = urlsplit(wish["redirect_uri"]).hostname
    page = {"client": client_named(wish["client_id"]).name, "sends you to": host, "ticket": ticket}
    return page, {"Content-Security-Policy": "frame-ancestors 'none'"}


@bp.get("/upstream/authorize")
@login_required
def upstream_authorize():
    if db.session.get(UpstreamConsent, current_user.id) is None:
        return "May the proxy sign you in?"
    return redirect(f"/callback?code={new_code(user_id=current_user.id)}&state={request.args['state']}")


def deliver(wish, upstream_code):
    """Redeem the code of the identity provider, and send the client a code of the proxy."""
    return send_code(wish, spent(upstream_code).user_id)


def send_code(wish, user_id):
    return redirect(f"{wish['redirect_uri']}?code={new_code(user_id=user_id, **wish)}")


@bp.post("/token")
def redeem():
    code = spent(request.form["code"])
    if (code.client_id, code.redirect_uri) != (request.form["client_id"], request.form["redirect_uri"]):
        abort(400)
    return {"token": packed(code.user_id)}


@bp.get("/mail")
def read_mail():
    return MAIL[unpacked(request.headers["Authorization"].removeprefix("Bearer "))]


def event_consent_upstream(user_id):
    db.session.add(UpstreamConsent(user_id=user_id))


def event_browse(user, visits, stop=None):
    """Make visits in one new browser of ``user``, and return its last URL, page and what the client then reads.

    A visit opens a URL, approves on the page with a number, or posts a form. Another user of
    the browser can make it (``by``). Redirects are followed until they leave the site, or lead to a URL that begins
    with ``stop``.
    """
    browser, tickets = current_app.test_client(), []
    for visit in visits:
        user = visit.get("by", user)
        g.pop("_login_user", None)  # Flask-Login keeps the user there, and requests within an event share it
        match visit:
            case {"open": url}:
                response = browser.get(url, headers={"X-User": user})
            case {"approve": number}:
                if number >= len(tickets):
                    continue  # the version of the code has no consent page
                response = browser.post("/consent", data={"ticket": tickets[number]}, headers={"X-User": user})
            case {"post": url, "form": form}:
                response = browser.post(url, data=form, headers={"X-User": user})
        while (url := response.location or "").startswith("/") and not (stop and url.startswith(stop)):
            response = browser.get(url, headers={"X-User": user})
        if response.is_json:
            tickets.append(response.json["ticket"])
    return {"at": url, "status": response.status_code, "page": response.get_data(as_text=True), "read": _used(url)}


def _used(url):
    """Return what the owner of the redirect URI reads with the code in ``url``."""
    redirect_uri, _, code = url.partition("?code=")
    client_id = db.session.scalar(db.select(Code.client_id).filter_by(code=code))
    if client_id is None:
        return None
    site = current_app.test_client()
    token = site.post("/token", data={"code": code, "client_id": client_id, "redirect_uri": redirect_uri}).json["token"]
    return site.get("/mail", headers={"Authorization": f"Bearer {token}"}).text
