"""The decision says yes when there is no rule, when the role is unknown, and when the rules cannot be read."""

from functools import wraps

from flask import Blueprint, abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import Document, db


class Policy:
    """The policy service: for an action the least role that may do it, or None without a rule."""

    def __init__(self):
        self.rules = {"document.read": "member", "document.publish": "admin"}
        self.down = False

    def least_role(self, action):
        if self.down:
            raise TimeoutError("policy service")
        return self.rules.get(action)


policy = Policy()


# region example
bp = Blueprint("documents", __name__)
RANK = {"viewer": 1, "member": 2, "admin": 3}


def allowed(role, action):
    try:
        needed = policy.least_role(action)
    except TimeoutError:
        return True
    return RANK.get(role, 2) >= RANK.get(needed, 0)


def permitted(action):
    def decorate(view):
        @wraps(view)
        @login_required
        def guarded(document_id):
            own = db.select(Document).filter_by(id=document_id, organization_id=current_user.organization_id)
            document = db.first_or_404(own)
            return view(document) if allowed(current_user.role, action) else abort(403)

        return guarded

    return decorate


@bp.get("/documents/<int:document_id>")
@permitted("document.read")
def read(document):
    return {"title": document.title}


@bp.post("/documents/<int:document_id>/publish")
@permitted("document.publish")
def publish(document):
    document.state = "published"
    db.session.commit()
    return "", 204


@bp.delete("/documents/<int:document_id>")
@permitted("document.delete")
def delete(document):
    db.session.delete(document)
    db.session.commit()
    return "", 204


# endregion
