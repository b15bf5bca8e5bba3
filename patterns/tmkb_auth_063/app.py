"""Accounts from which their owners make payouts. A version of the code makes each payout once per idempotency key."""

from flask import Blueprint, abort
from flask_caching import Cache
from flask_login import current_user
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Account(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    balance = mapped_column(db.Integer, nullable=False)
    owner_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


class Payout(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    account_id = mapped_column(db.Integer, nullable=False)
    iban = mapped_column(db.String, nullable=False)
    amount = mapped_column(db.Integer, nullable=False)


bp = Blueprint("payouts", __name__)
cache = Cache()


def own_accounts():
    """Return the select of the accounts from which the user may make payouts."""
    return db.select(Account).filter_by(owner_id=current_user.id, organization_id=current_user.organization_id)


def pay(account, iban, amount):
    """Make a payout without a commit, and return the response to it."""
    if not 0 < amount <= account.balance:
        abort(409)
    account.balance -= amount
    payout = Payout(account_id=account.id, iban=iban, amount=amount)
    db.session.add(payout)
    db.session.flush()
    return {"id": payout.id, "iban": iban, "amount": amount, "balance": account.balance}


def event_open_accounts():
    """Open accounts for Bob and Alice of Acme, and for Mallory of Globex."""
    db.session.add_all(
        [
            Account(id=1, balance=7405, owner_id=2, organization_id=1),
            Account(id=2, balance=50, owner_id=3, organization_id=2),
            Account(id=3, balance=60, owner_id=1, organization_id=1),
        ]
    )


def event_open_account(account_id, owner_id, organization_id):
    """Open an account."""
    db.session.add(Account(id=account_id, balance=70, owner_id=owner_id, organization_id=organization_id))


def event_give(account_id, owner_id):
    """Give an account to another owner."""
    db.session.get(Account, account_id).owner_id = owner_id


def state_payouts():
    payouts = db.session.scalars(db.select(Payout).order_by(Payout.id))
    return [[payout.account_id, payout.iban, payout.amount] for payout in payouts]


def state_repeated():
    """Return the destinations to which an amount was paid more than once."""
    payouts = db.select(Payout.iban).group_by(Payout.iban, Payout.amount).having(db.func.count() > 1)
    return list(db.session.scalars(payouts))
