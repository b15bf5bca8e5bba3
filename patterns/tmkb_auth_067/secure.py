"""Each request and each job finds only an active account of an active company, whatever the credential."""

from app import Account, Company, Order, bp, credential_account_id
from celery import shared_task
from flask import g

from tmkb.authoring.proofs.stage import db


# region example
# region template
def active_account(account_id):
    accounts = db.select(Account).join(Company).where(Account.state == "active", Company.state == "active")
    return db.session.scalar(accounts.where(Account.id == account_id))


@bp.before_request
def load_account():
    # Views answer 401 if this is None.
    g.account = active_account(credential_account_id())


# endregion


@shared_task(name="place_order")
def place_order(account_id, item):
    account = active_account(account_id)
    if account is None:
        raise PermissionError
    db.session.add(Order(item=item, company_id=account.company_id))
    db.session.commit()


# endregion
