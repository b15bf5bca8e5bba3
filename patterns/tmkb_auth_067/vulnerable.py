"""Only the login refuses accounts that are not active; sessions, keys and jobs go on."""

from app import Account, Order, bp, credential_account_id
from celery import shared_task
from flask import g

from tmkb.authoring.proofs.stage import db


# region example
@bp.before_request
def load_account():
    account_id = credential_account_id()
    g.account = db.session.get(Account, account_id) if account_id else None


@shared_task(name="place_order")
def place_order(account_id, item):
    account = db.session.get(Account, account_id)
    db.session.add(Order(item=item, company_id=account.company_id))
    db.session.commit()


# endregion
