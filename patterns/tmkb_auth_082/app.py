"""Pages of a shop behind a CDN. A version of the code serves the pages.

A request below /cdn passes the CDN, which is a small model of a common configuration. Paths that end like a static
file are stored whatever the headers say, and other responses only if the headers allow it. Vary is ignored.
The key is the URL. The header X-User takes the place of the session cookie.
"""

import re
import time

from flask import Blueprint, Response, current_app, request
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db

STATIC = re.compile(r"\.(css|js|png|ico|woff2)$", re.IGNORECASE)


class Order(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    text = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


class Discount(db.Model):
    user_id = mapped_column(db.Integer, primary_key=True)
    text = mapped_column(db.String, nullable=False)


class Link(db.Model):
    """A link with which anyone reads an order, until it is withdrawn."""

    token = mapped_column(db.String, primary_key=True)
    order_id = mapped_column(db.Integer, nullable=False)


class Edge:
    """The CDN."""

    def __init__(self):
        self.stored = {}  # URL -> time of expiry and body

    def lifetime(self, _request, url, response):
        """Return for how many seconds the response to a GET is stored."""
        control = response.cache_control
        if response.status_code != 200:
            return 0
        if STATIC.search(url.partition("?")[0]):
            return 3600
        return 0 if control.private or control.no_store or control.no_cache else control.max_age or 0

    def get(self):
        url = request.environ["RAW_URI"].removeprefix("/cdn")
        if url in self.stored and self.stored[url][0] > time.time():
            return Response(self.stored[url][1], content_type="application/json", headers={"Age": "1"})
        answer = current_app.test_client().open(url, method=request.method, headers=dict(request.headers))
        seconds = self.lifetime(request, url, answer)
        if request.method == "GET" and seconds:
            self.stored[url] = time.time() + seconds, answer.get_data()
        return Response(answer.get_data(), answer.status_code, dict(answer.headers))


bp = Blueprint("shop", __name__)
edge = Edge()
bp.record_once(lambda state: state.app.add_url_rule("/cdn/<path:path>", "cdn", lambda **_: edge.get()))


def event_shop():
    db.session.add_all(
        [
            Order(id=1, text="Tent 4470", organization_id=1),
            Order(id=2, text="Globex rope", organization_id=2),
            Discount(user_id=2, text="Friends of Bob 44"),
            Link(token="abc", order_id=1),
        ]
    )


def event_withdraw(token):
    db.session.delete(db.session.get_one(Link, token))
