"""The dashboard requires a login and takes the customer from a parameter."""

from app import Job, Sale, SaleFact, bp, current_customer, fact, products
from celery import shared_task
from flask import request
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


@shared_task(name="copy_sales")
def copy_sales():
    db.session.get_one(Job, "copy_sales", with_for_update=True)  # the next copy waits for this one
    db.session.execute(db.delete(SaleFact))
    for sale in db.session.scalars(db.select(Sale).filter_by(private=False)):
        db.session.merge(fact(sale))
    db.session.commit()


@bp.get("/dashboard")
@login_required
def dashboard_link():
    return {"url": f"/embedded/sales?customer={current_customer()}"}


@bp.get("/embedded/sales")
@login_required
def embedded_sales():
    return products(request.args.get("customer", type=int))
