"""Companies whose accounts place orders by session, API key, refresh token or job. Accounts and companies have a state.

The login refuses accounts that are not active. A version of the code finds the account of each request and each job.
Passwords are a stand-in for hashes.
"""

from functools import wraps
from hmac import compare_digest
from secrets import token_urlsafe

from celery import current_app as celery_app
from flask import Blueprint, abort, g, request, session
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Company(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    state = mapped_column(db.String, nullable=False, default="active")


class Account(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    name = mapped_column(db.String, nullable=False, unique=True)
    password = mapped_column(db.String, nullable=False)
    state = mapped_column(db.String)  # active, unverified, suspended, closing; others may follow
    company_id = mapped_column(db.ForeignKey("company.id"), nullable=False)
    company = db.relationship(Company)


class Token(db.Model):
    """An API key or a refresh token of an account."""

    token = mapped_column(db.String, primary_key=True, default=token_urlsafe)
    kind = mapped_column(db.String, nullable=False)
    account_id = mapped_column(db.Integer, nullable=False)


class Order(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    item = mapped_column(db.String, nullable=False)
    company_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("orders", __name__)
PUBLIC = {"orders.sign_up", "orders.log_in"}  # endpoints without an account


def credential_account_id():
    """Return the id of the account that the API key or else the session names; None without a valid one."""
    if "X-Api-Key" in request.headers:
        return account_of_token("api key", request.headers["X-Api-Key"])
    return session.get("account_id")


def account_of_token(kind, token):
    return db.session.scalar(db.select(Token.account_id).filter_by(kind=kind, token=token))


def account_required(view):
    @wraps(view)
    def guarded(*args, **kwargs):
        if g.account is None:
            abort(401)
        return view(*args, **kwargs)

    return guarded


@bp.post("/signup")
def sign_up():
    body = request.get_json()
    company = Company()
    db.session.add(company)
    db.session.flush()
    account = Account(name=body["name"], password=body["password"], state="unverified", company_id=company.id)
    db.session.add(account)
    db.session.commit()
    session["account_id"] = account.id
    return "", 201


@bp.post("/login")
def log_in():
    body = request.get_json()
    account = db.session.scalar(db.select(Account).filter_by(name=body["name"]))
    if account is None or not compare_digest(account.password, body["password"]) or account.state != "active":
        abort(403)
    session["account_id"] = account.id
    return "", 204


@bp.post("/refresh")
def refresh():
    session["account_id"] = account_of_token("refresh", request.get_json()["token"])
    return "", 204


@bp.post("/tokens/<kind>")
@account_required
def create_token(kind):
    token = Token(kind=kind, account_id=g.account.id)
    db.session.add(token)
    db.session.commit()
    return {"token": token.token}, 201


@bp.get("/orders")
@account_required
def list_orders():
    return list(db.session.scalars(db.select(Order.item).filter_by(company_id=g.account.company_id)))


@bp.post("/orders")
@account_required
def create_order():
    db.session.add(Order(item=request.get_json()["item"], company_id=g.account.company_id))
    db.session.commit()
    return "", 201


@bp.post("/orders/later")
@account_required
def create_order_later():
    celery_app.send_task("place_order", [g.account.id, request.get_json()["item"]])
    return "", 202


def event_open():
    """Open companies and accounts; bob and alice have the same company."""
    db.session.add_all([Company(id=1), Company(id=2)])
    for number, (name, company_id) in enumerate([("alice", 1), ("bob", 1), ("mallory", 2)], 1):
        db.session.add(Account(id=number, name=name, password="secret", state="active", company_id=company_id))
    db.session.add(Order(item="Pump 4811", company_id=1))


def event_set_state(name, state):
    """Set the state of an account."""
    db.session.execute(db.update(Account).filter_by(name=name).values(state=state))


def event_set_company_state(company_id, state):
    """Set the state of a company."""
    db.session.get(Company, company_id).state = state


def state_orders():
    return [[order.company_id, order.item] for order in db.session.scalars(db.select(Order).order_by(Order.id))]


def state_tokens():
    return db.session.scalar(db.select(db.func.count()).select_from(Token))
