"""The state is checked for sessions; an API key is its own credential."""

from app import Account, Company, Order, bp, credential_account_id
from celery import shared_task
from flask import g, request

from tmkb.authoring.proofs.stage import db


def active_account(account_id):
    accounts = db.select(Account).join(Company).where(Account.state == "active", Company.state == "active")
    return db.session.scalar(accounts.where(Account.id == account_id))


@bp.before_request
def load_account():
    account_id = credential_account_id()
    if "X-Api-Key" in request.headers:
        g.account = db.session.get(Account, account_id) if account_id else None
    else:
        g.account = active_account(account_id)


@shared_task(name="place_order")
def place_order(account_id, item):
    account = active_account(account_id)
    if account is None:
        raise PermissionError
    db.session.add(Order(item=item, company_id=account.company_id))
    db.session.commit()
