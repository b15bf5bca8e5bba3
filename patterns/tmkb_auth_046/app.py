"""Documents, and a policy service with a rule for some actions. A version of the code decides with it."""

from flask import Blueprint, request
from flask_login import current_user
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import Document, db


class Rule(db.Model):
    action = mapped_column(db.String, primary_key=True)
    least_role = mapped_column(db.JSON)


class Policy:
    """The client of the policy service."""

    error = None

    def least_role(self, action):
        """Return the least role that may perform ``action``; None without a rule."""
        if self.error is not None:
            raise self.error
        rule = db.session.get(Rule, action)
        return rule and rule.least_role


policy = Policy()
bp = Blueprint("documents", __name__)


def own_document(document_id):
    own = db.select(Document).filter_by(id=document_id, organization_id=current_user.organization_id)
    return db.first_or_404(own)


@bp.route("/documents/<int:document_id>", methods=["GET", "DELETE"])
def document(document_id):
    document = own_document(document_id)
    if request.method != "DELETE":
        return {"title": document.title}
    db.session.delete(document)
    db.session.commit()
    return "", 204


@bp.post("/documents/<int:document_id>/publish")
def publish(document_id):
    own_document(document_id).state = "published"
    db.session.commit()
    return "", 204


@bp.get("/documents/<int:document_id>/history")
def history(document_id):
    return {"history": [f"created {own_document(document_id).title}"]}


def event_rule(action, least_role):
    """Set the rule of a method and endpoint, and that of the endpoint alone for code that asks only for it."""
    for name in (action, action.split()[1]):
        db.session.merge(Rule(action=name, least_role=least_role))


def event_fail(error):
    policy.error = {"timeout": TimeoutError(), "connection": ConnectionError(), "response": ValueError()}[error]


def event_unpublish():
    db.session.get(Document, 1).state = "new"


def state_documents():
    return [[document.title, document.state] for document in db.session.scalars(db.select(Document))]
