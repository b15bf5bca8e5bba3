"""Bids that admins delete by a timestamp. Each endpoint except restore finds only live bids."""

from time import time

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel
from sqlalchemy import ForeignKey, Select, select, text
from sqlalchemy.orm import Mapped, Session, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db, User


class Bid(Base):
    __tablename__ = "bids"
    id: Mapped[int] = mapped_column(primary_key=True)
    price: Mapped[int]
    text: Mapped[str]
    deleted_at: Mapped[int | None]  # Unix time
    organization_id: Mapped[int] = mapped_column(ForeignKey("organizations.id"))


class NewBid(BaseModel):
    price: int
    text: str


class BidUpdate(BaseModel):
    price: int | None = None
    text: str | None = None


router = APIRouter()


@router.post("/bids", status_code=201)
def create_bid(body: NewBid, user: CurrentUser, db: Db):
    if user.organization_id is None:
        raise HTTPException(403)
    bid = Bid(**body.model_dump(), organization_id=user.organization_id)
    db.add(bid)
    db.commit()
    return {"id": bid.id}


# region idiom
def live_bids(user):
    return select(Bid).where(Bid.organization_id == user.organization_id, Bid.deleted_at.is_(None))


@router.patch("/bids/{bid_id}", status_code=204)
def update_bid(bid_id: int, change: BidUpdate, user: CurrentUser, db: Db):
    bid = lock_or_404(db, live_bids(user), bid_id)
    for field, value in change.model_dump(exclude_none=True).items():
        setattr(bid, field, value)
    db.commit()


# endregion


def get_or_404(db: Session, bids: Select, bid_id: int) -> Bid:
    bid = db.scalar(bids.where(Bid.id == bid_id))
    if bid is None:
        raise HTTPException(404)
    return bid


def lock_or_404(db: Session, bids: Select, bid_id: int) -> Bid:
    return get_or_404(db, bids.with_for_update(), bid_id)


def require_admin(user: User) -> None:
    if user.role != "admin":
        raise HTTPException(403)


@router.get("/bids")
def list_bids(user: CurrentUser, db: Db):
    return [{"id": bid.id, "text": bid.text} for bid in db.scalars(live_bids(user))]


@router.get("/bids/{bid_id}")
def show_bid(bid_id: int, user: CurrentUser, db: Db):
    bid = get_or_404(db, live_bids(user), bid_id)
    return {"price": bid.price, "text": bid.text}


@router.delete("/bids/{bid_id}", status_code=204)
def delete_bid(bid_id: int, user: CurrentUser, db: Db):
    bid = lock_or_404(db, live_bids(user), bid_id)
    require_admin(user)
    bid.deleted_at = int(time())
    db.commit()


@router.post("/bids/{bid_id}/copies", status_code=201)
def copy_bid(bid_id: int, user: CurrentUser, db: Db):
    bid = get_or_404(db, live_bids(user), bid_id)
    copy = Bid(price=bid.price, text=bid.text, organization_id=bid.organization_id)
    db.add(copy)
    db.commit()
    return {"id": copy.id}


@router.post("/bids/{bid_id}/restore", status_code=204)
def restore_bid(bid_id: int, user: CurrentUser, db: Db):
    bids = select(Bid).where(Bid.organization_id == user.organization_id)
    bid = lock_or_404(db, bids, bid_id)
    require_admin(user)
    bid.deleted_at = None
    db.commit()


def state_bids(db):
    rows = db.execute(text("SELECT id, price, text, deleted_at, organization_id FROM bids ORDER BY id"))
    return [list(row) for row in rows]
