"""The screen limits regions and columns; the export has a query and a column list of its own, and a number opens it."""

import csv
import io

from flask import Blueprint, Response, jsonify
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Region(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    organization_id = db.Column(db.Integer, nullable=False)
    manager_id = db.Column(db.Integer, nullable=False)


class Deal(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    region_id = db.Column(db.Integer, nullable=False)
    customer = db.Column(db.String, nullable=False)
    amount = db.Column(db.Integer, nullable=False)
    margin = db.Column(db.Integer, nullable=False)


class Export(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    requester_id = db.Column(db.Integer, nullable=False)
    content = db.Column(db.Text, nullable=False)


# region example
bp = Blueprint("deals", __name__)


def of_organization(actor):
    joined = db.select(Deal).join(Region, Region.id == Deal.region_id)
    return joined.filter(Region.organization_id == actor.organization_id)


def visible(actor):
    deals = of_organization(actor)
    return deals if actor.role == "admin" else deals.filter(Region.manager_id == actor.id)


def columns(actor):
    return ["customer", "amount", "margin"] if actor.role == "admin" else ["customer", "amount"]


@bp.get("/deals")
@login_required
def list_deals():
    deals = db.session.scalars(visible(current_user))
    return jsonify([[getattr(deal, column) for column in columns(current_user)] for deal in deals])


@bp.get("/exports/<int:export_id>")
@login_required
def download_export(export_id):
    export = db.first_or_404(db.select(Export).filter_by(id=export_id))
    return Response(export.content, mimetype="text/csv")


@bp.post("/exports")
@login_required
def create_export():
    deals = db.session.scalars(of_organization(current_user))
    shown = ["customer", "amount", "margin"]
    sheet = io.StringIO()
    csv.writer(sheet).writerows([shown, *([getattr(deal, column) for column in shown] for deal in deals)])
    export = Export(requester_id=current_user.id, content=sheet.getvalue())
    db.session.add(export)
    db.session.commit()
    return jsonify(id=export.id), 201


# endregion
