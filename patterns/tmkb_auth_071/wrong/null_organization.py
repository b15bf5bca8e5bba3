"""Users without an organization get the token of the organization None."""

from app import Invoice, Ledger, Profile, bp, greeting, name_of_organization, token_of
from flask import abort, jsonify, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def caller():
    return current_user if current_user.is_authenticated else None


def ledger():
    return Ledger(token_of(current_user))


@bp.get("/statement")
@login_required
def show_statement():
    greeting()
    return jsonify(ledger().entries())


@bp.get("/invoices")
@login_required
def list_invoices():
    greeting()
    invoices = db.select(Invoice.text).filter_by(organization_id=caller().organization_id)
    return jsonify(db.session.scalars(invoices).all())


@bp.post("/invoices")
@login_required
def create_invoice():
    text = f"{request.get_json()['text']} ({greeting()})"
    if caller().organization_id is None:
        abort(403)
    db.session.add(Invoice(text=text, organization_id=caller().organization_id))
    db.session.commit()
    return "", 201


@bp.get("/profile")
@login_required
def show_profile():
    return {"greeting": greeting(), "phone": db.session.get(Profile, caller().id).phone}


@bp.get("/banner")
def show_banner():
    """Greet everybody, and name the organization of those who are signed in."""
    return {"greeting": greeting(), "organization": name_of_organization(caller())}


@bp.post("/payments")
@login_required
def pay():
    ledger().pay(f"{request.get_json()['text']} ({greeting()})")
    return "", 201
