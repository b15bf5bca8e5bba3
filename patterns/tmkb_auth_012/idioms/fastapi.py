"""Tickets, which only their authors delete, one or many."""

from collections.abc import Sequence

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel
from sqlalchemy import select, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from tmkb.authoring.stacks.fastapi import Base, CurrentUser, Db, User


class Ticket(Base):
    __tablename__ = "tickets"
    id: Mapped[int] = mapped_column(primary_key=True)
    subject: Mapped[str]
    author_id: Mapped[int]
    organization_id: Mapped[int]


class NewTicket(BaseModel):
    subject: str


class Batch(BaseModel):
    ids: set[int]


router = APIRouter()


@router.post("/tickets", status_code=201)
def create_ticket(body: NewTicket, user: CurrentUser, db: Db):
    if user.organization_id is None:
        raise HTTPException(403)
    ticket = Ticket(subject=body.subject, author_id=user.id, organization_id=user.organization_id)
    db.add(ticket)
    db.commit()
    return {"id": ticket.id}


# region idiom
def own_tickets_or_404(db: Session, user: User, ids: set[int]) -> Sequence[Ticket]:
    mine = select(Ticket).filter_by(organization_id=user.organization_id, author_id=user.id)
    chosen = mine.where(Ticket.id.in_(ids)).order_by(Ticket.id)
    found = db.scalars(chosen.with_for_update(of=Ticket)).all()
    if {ticket.id for ticket in found} != ids:
        raise HTTPException(404)
    return found


# endregion


@router.delete("/tickets/{ticket_id}", status_code=204)
def delete_ticket(ticket_id: int, user: CurrentUser, db: Db):
    [ticket] = own_tickets_or_404(db, user, {ticket_id})
    db.delete(ticket)
    db.commit()


@router.post("/tickets/delete", status_code=204)
def delete_tickets(batch: Batch, user: CurrentUser, db: Db):
    for ticket in own_tickets_or_404(db, user, batch.ids):
        db.delete(ticket)
    db.commit()


def event_move(db, ticket, organization):
    db.get_one(Ticket, ticket).organization_id = organization


def event_hand_over(db, ticket, author):
    db.execute(update(Ticket).where(Ticket.id == ticket).values(author_id=author))


def state_tickets(db):
    return list(db.scalars(select(Ticket.subject).order_by(Ticket.id)))
