"""The management area of organizations, whose guard refuses operations that have no permission."""

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Mapped, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db, OptionalUser, User


class Membership(Base):
    __tablename__ = "memberships"
    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int]
    organization_id: Mapped[int]
    active: Mapped[bool] = mapped_column(default=True)


class AuditEntry(Base):
    __tablename__ = "audit_entries"
    id: Mapped[int] = mapped_column(primary_key=True)
    text: Mapped[str]
    organization_id: Mapped[int]


PERMISSIONS = {
    "admin": {"users.disable", "audit.read", "audit.clear"},
    "auditor": {"audit.read"},
    "member": set(),
}


def refuse_disabled_users(user: OptionalUser, db: Db) -> None:
    if user and db.scalar(memberships_beside(user).filter_by(user_id=user.id, active=False)):
        raise HTTPException(401)


def memberships_beside(user):
    return select(Membership).where(Membership.organization_id == user.organization_id)


# region idiom
NEEDS = {"disable_user": "users.disable", "read_audit": "audit.read", "clear_audit": "audit.clear"}


def guard(request: Request, user: OptionalUser) -> None:
    needed = NEEDS.get(request.scope["route"].name)
    if needed not in PERMISSIONS.get(user and user.role, ()):
        raise HTTPException(401 if needed and user is None else 403)


admin = APIRouter(prefix="/admin", dependencies=[Depends(guard)])
# endregion


@admin.post("/users/{user_id}/disable", status_code=204)
def disable_user(user_id: int, user: CurrentUser, db: Db):
    membership = db.scalar(memberships_beside(user).filter_by(user_id=user_id))
    if membership is None:
        raise HTTPException(404)
    membership.active = False
    db.add(AuditEntry(text=f"{user_id} disabled", organization_id=user.organization_id))
    db.commit()


@admin.get("/audit")
def read_audit(user: CurrentUser, db: Db):
    return db.scalars(select(AuditEntry.text).where(AuditEntry.organization_id == user.organization_id)).all()


@admin.delete("/audit", status_code=204)
def clear_audit(user: CurrentUser, db: Db):
    db.execute(delete(AuditEntry).where(AuditEntry.organization_id == user.organization_id))
    db.commit()


@admin.post("/purge", status_code=204)
def purge(db: Db):
    """Delete the log of all organizations. A maintenance route that was added later, for one use."""
    db.execute(delete(AuditEntry))
    db.commit()


@admin.api_route("/reset", methods=["POST", "OPTIONS"], status_code=204)
def reset(db: Db):
    """Enable all accounts. The route answers OPTIONS itself, for a frontend on another origin."""
    db.execute(update(Membership).values(active=True))
    db.commit()


router = APIRouter(dependencies=[Depends(refuse_disabled_users)])
router.include_router(admin)


def configure(app: FastAPI):
    @app.exception_handler(405)
    def answer_options(request, error):
        """Answer OPTIONS with the methods of a route that does not answer it itself."""
        return Response(status_code=200 if request.method == "OPTIONS" else 405, headers=error.headers)


def event_start(db):
    for user in db.scalars(select(User)):
        db.add(Membership(user_id=user.id, organization_id=user.organization_id))
    db.add(Membership(user_id=99, organization_id=1, active=False))
    db.add(AuditEntry(text="Alice read the payroll", organization_id=1))


def event_disable(db, user_id):
    db.execute(update(Membership).filter_by(user_id=user_id).values(active=False))


def state_accounts(db):
    return [[each.user_id, each.active] for each in db.scalars(select(Membership).order_by(Membership.id))]


def state_log(db):
    return list(db.scalars(select(AuditEntry.text).order_by(AuditEntry.id)))
