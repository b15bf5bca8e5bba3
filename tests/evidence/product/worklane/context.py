"""The organization in which the current user works."""

from flask import abort, g, session
from flask_login import current_user


def load():
    """Set g.membership and g.organization before each request; None if nobody is signed in."""
    g.membership = g.organization = None
    if not current_user.is_authenticated:
        return
    membership = current_user.membership_in(session.get("organization_id"))
    if membership is None and current_user.memberships:
        membership = current_user.memberships[0]
        session["organization_id"] = membership.organization_id
    if membership is not None:
        g.membership, g.organization = membership, membership.organization


def switch(organization_id):
    membership = current_user.membership_in(organization_id)
    if membership is None:
        abort(404)
    session["organization_id"] = organization_id
    g.membership, g.organization = membership, membership.organization
