"""Tickets with comments, and URLs to which a version of the code sends new comments.

DNS and HTTP are stubs: names are looked up in a dict, and what would be sent is appended to a list.
"""

from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from flask import Blueprint, abort, request
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column, relationship

from tmkb.authoring.proofs.stage import User, db


class Ticket(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    organization_id = mapped_column(db.Integer, nullable=False)


class Comment(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    ticket_id = mapped_column(db.ForeignKey("ticket.id"))
    text = mapped_column(db.String)
    minutes = mapped_column(db.Integer)
    internal = mapped_column(db.Boolean)
    ticket = relationship(Ticket)


class Watch(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    ticket_id = mapped_column(db.ForeignKey("ticket.id"))
    user_id = mapped_column(db.Integer)
    url = mapped_column(db.String)


bp = Blueprint("comments", __name__)
addresses = {"hooks.example": "93.184.215.14", "broken.example": "93.184.215.14", "intranet.example": "10.0.0.7"}
sent = []
during_delivery = []  # statements that another process executes during the next delivery

GLOBAL_UNICAST = ip_network("2000::/3")


def transport(url, body):
    if "broken.example" in url:
        raise ConnectionError(url)
    sent.append([url, body])
    with db.engine.begin() as connection:
        while during_delivery:
            connection.execute(during_delivery.pop())


def is_public(url):
    try:
        host = urlsplit(url).hostname
        address = ip_address(addresses.get(host, host))
    except ValueError:
        return False  # a malformed URL or an unknown host
    if address.version == 6 and (address not in GLOBAL_UNICAST or address.sixtofour):
        return False  # such as 64:ff9b::/96 and 2002::/16, which contain IPv4 addresses
    return address.is_global and not address.is_multicast


def post_json(url, body):
    """Send ``body`` to ``url`` unless it leads to a private address (server-side request forgery)."""
    if url.startswith("https://") and is_public(url):
        transport(url, body)


def view(user, comment):
    """Return what the page of ``comment`` shows to ``user``; None if it refuses."""
    if comment.ticket.organization_id != user.organization_id or (comment.internal and user.role == "guest"):
        return None
    return {"text": comment.text} if user.role == "guest" else {"text": comment.text, "minutes": comment.minutes}


@bp.get("/comments/<int:comment_id>")
@login_required
def show_comment(comment_id):
    return view(current_user, db.get_or_404(Comment, comment_id)) or abort(404)


@bp.post("/tickets/<int:ticket_id>/watches")
@login_required
def watch_ticket(ticket_id):
    own_ticket_or_404(ticket_id)
    db.session.add(Watch(ticket_id=ticket_id, user_id=current_user.id, url=request.get_json()["url"]))
    db.session.commit()
    return "", 204


def own_ticket_or_404(ticket_id):
    return db.first_or_404(db.select(Ticket).filter_by(id=ticket_id, organization_id=current_user.organization_id))


def store_comment(ticket_id):
    own_ticket_or_404(ticket_id)
    comment = Comment(ticket_id=ticket_id, **request.get_json())
    db.session.add(comment)
    db.session.commit()
    return comment


def event_tickets():
    """Acme has tickets 1 and 3, and Globex has ticket 2."""
    db.session.add_all([Ticket(id=number, organization_id=1 + (number == 2)) for number in (1, 2, 3)])


def event_watch(ticket_id, user_id, url):
    db.session.add(Watch(ticket_id=ticket_id, user_id=user_id, url=url))


def event_make_internal(comment_id):
    db.session.get(Comment, comment_id).internal = True


def event_leave_during_delivery(user_id):
    """Let a user leave the organization while the first watcher is being notified."""
    during_delivery.append(db.update(User).filter_by(id=user_id).values(organization_id=None))


def event_make_internal_during_delivery(comment_id):
    during_delivery.append(db.update(Comment).filter_by(id=comment_id).values(internal=True))


def event_move_ticket(ticket_id, organization_id):
    db.session.get(Ticket, ticket_id).organization_id = organization_id


def event_resolve(host, address):
    addresses[host] = address


def state_sent():
    return sent
