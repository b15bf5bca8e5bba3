"""The account is loaded, and a state that is not active is refused with its name."""

from app import PUBLIC, Account, Order, bp, credential_account_id
from celery import shared_task
from flask import abort, g, request

from tmkb.authoring.proofs.stage import db


# region example
@bp.before_request
def load_account():
    account_id = credential_account_id()
    g.account = db.session.get(Account, account_id) if account_id else None
    if not g.account or request.endpoint in PUBLIC:
        return
    if (g.account.state, g.account.company.state) != ("active", "active"):
        abort(403, description=f"account: {g.account.state}, company: {g.account.company.state}")


@shared_task(name="place_order")
def place_order(account_id, item):
    account = db.session.get_one(Account, account_id)
    if (account.state, account.company.state) != ("active", "active"):
        raise PermissionError
    db.session.add(Order(item=item, company_id=account.company_id))
    db.session.commit()


# endregion
