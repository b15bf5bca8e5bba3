"""The API key and the members of an organization. All routes are in one router that depends on the guard."""

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Response
from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.orm import Mapped, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db, User


class Settings(Base):
    __tablename__ = "settings"
    organization_id: Mapped[int] = mapped_column(primary_key=True)
    api_key: Mapped[str | None]


class NewKey(BaseModel):
    api_key: str


reports = APIRouter()


@reports.get("/members.csv")
def export_members(user: CurrentUser, db: Db):
    return Response("\n".join(f"{each.name},{each.role}" for each in members(user, db)), media_type="text/csv")


def members(user, db):
    return db.scalars(select(User).where(User.organization_id == user.organization_id).order_by(User.id))


# region idiom
def require_admin(user: CurrentUser) -> None:
    if user.organization_id is None or user.role != "admin":
        raise HTTPException(403)


administration = APIRouter(dependencies=[Depends(require_admin)])
administration.include_router(reports)  # which has no guard


@administration.get("/key")
def show_key(user: CurrentUser, db: Db):
    return {"key": db.get(Settings, user.organization_id).api_key}


# endregion


@administration.put("/key", status_code=204)
def replace_key(body: NewKey, user: CurrentUser, db: Db):
    db.get(Settings, user.organization_id).api_key = body.api_key
    db.commit()


@administration.delete("/key", status_code=204)
def revoke_key(user: CurrentUser, db: Db):
    db.get(Settings, user.organization_id).api_key = None
    db.commit()


@administration.get("/members")
def list_members(user: CurrentUser, db: Db):
    return [f"{each.name} is {each.role}" for each in members(user, db)]


router = administration


def configure(app: FastAPI):
    app.router.redirect_slashes = False

    @app.exception_handler(405)
    def answer_options(request, error):
        """Answer OPTIONS with the methods of a route."""
        return Response(status_code=200 if request.method == "OPTIONS" else 405, headers=error.headers)


def event_begin(db):
    db.add_all([Settings(organization_id=1, api_key="acme-4200"), Settings(organization_id=2, api_key="globex-31")])


def state_key(db):
    return db.get(Settings, 1).api_key
