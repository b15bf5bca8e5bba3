"""A second decorator publishes functions for administrators only, and their lookups are limited to the organization."""

from functools import wraps

from app import Payout, bp, procedure
from flask import abort, render_template_string
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db

PAGE = """
{% for payout in payouts %}
<p>Payout {{ payout.id }}: {{ payout.state }}, {{ iban(payout.id) }}
  <button data-procedure="approve_payout" data-id="{{ payout.id }}">Approve</button></p>
{% endfor %}
"""


# region example
def payouts():
    return db.select(Payout).filter_by(organization_id=current_user.organization_id)


@procedure
def request_payout(iban):
    if current_user.is_anonymous:
        abort(401)
    if current_user.organization_id is None:
        abort(403)
    payout = Payout(iban=iban, organization_id=current_user.organization_id)
    db.session.add(payout)
    db.session.commit()
    return payout.id


def admin_procedure(function):
    @procedure
    @wraps(function)
    def guarded(*args, **kwargs):
        if current_user.is_anonymous or current_user.role != "admin":
            abort(403)
        return function(*args, **kwargs)

    return guarded


@admin_procedure
def approve_payout(payout_id):
    payout = db.first_or_404(payouts().filter_by(id=payout_id))
    payout.state = "approved"
    db.session.commit()


@admin_procedure
def payout_iban(payout_id):
    return db.first_or_404(payouts().filter_by(id=payout_id)).iban


@bp.get("/payouts")
@login_required
def payouts_page():
    if current_user.role != "admin":
        abort(403)
    own = payouts().filter_by(organization_id=current_user.organization_id)
    return render_template_string(PAGE, payouts=db.session.scalars(own), iban=payout_iban)


# endregion
