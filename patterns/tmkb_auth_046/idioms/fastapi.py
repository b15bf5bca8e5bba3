"""Documents, and a policy service. Only a known rule and a known role give permission, and no failure does."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from sqlalchemy import JSON, select
from sqlalchemy.orm import Mapped, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db, Document


class Rule(Base):
    __tablename__ = "rules"
    action: Mapped[str] = mapped_column(primary_key=True)
    least_role: Mapped[Any] = mapped_column(JSON)


class Policy:
    """The client of the policy service."""

    error = None

    def __init__(self, db: Db) -> None:
        self.db = db

    def least_role(self, action):
        """Return the least role that may perform ``action``; None without a rule."""
        if self.error is not None:
            raise self.error
        rule = self.db.get(Rule, action)
        return rule and rule.least_role


PolicyService = Annotated[Policy, Depends()]
RANKS = {"viewer": 1, "member": 2, "admin": 3}


# region idiom
def require_rule(request: Request, user: CurrentUser, policy: PolicyService) -> None:
    try:
        least = policy.least_role(f"{request.method} {request.scope['route'].name}")
        allowed = RANKS[user.role] >= RANKS[least]
    except Exception:
        allowed = False
    if not allowed:
        raise HTTPException(403)


# endregion

router = APIRouter(prefix="/documents/{document_id}", dependencies=[Depends(require_rule)])


def load_document(document_id: int, user: CurrentUser, db: Db) -> Document:
    own = select(Document).where(Document.organization_id == user.organization_id)
    document = db.scalar(own.where(Document.id == document_id))
    if document is None:
        raise HTTPException(404)
    return document


OwnDocument = Annotated[Document, Depends(load_document)]


@router.get("", name="documents.document")
def show(document: OwnDocument):
    return {"title": document.title}


@router.delete("", name="documents.document", status_code=204)
def delete(document: OwnDocument, db: Db):
    db.delete(document)
    db.commit()


@router.post("/publish", name="documents.publish", status_code=204)
def publish(document: OwnDocument, db: Db):
    document.state = "published"
    db.commit()


@router.get("/history", name="documents.history")
def history(document: OwnDocument):
    return {"history": [f"created {document.title}"]}


def configure(app: FastAPI):
    @app.exception_handler(405)
    def answer_options(request, error):
        """Answer OPTIONS with the methods of a route."""
        return Response(status_code=200 if request.method == "OPTIONS" else 405, headers=error.headers)


def event_rule(db, action, least_role):
    db.merge(Rule(action=action, least_role=least_role))


def event_fail(db, error):
    Policy.error = {"timeout": TimeoutError(), "connection": ConnectionError(), "response": ValueError()}[error]


def event_unpublish(db):
    db.get(Document, 1).state = "new"


def state_documents(db):
    return [[document.title, document.state] for document in db.scalars(select(Document))]
