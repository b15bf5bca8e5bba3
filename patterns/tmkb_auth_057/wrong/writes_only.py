"""Only the procedure that changes data checks the caller."""

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


def payouts():
    if current_user.is_anonymous or current_user.role != "admin":
        abort(403)
    return db.select(Payout).filter_by(organization_id=current_user.organization_id)


@procedure
def approve_payout(payout_id):
    payout = db.first_or_404(payouts().filter_by(id=payout_id))
    payout.state = "approved"
    db.session.commit()


@procedure
def payout_iban(payout_id):
    return db.get_or_404(Payout, payout_id).iban


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


@bp.get("/payouts")
@login_required
def payouts_page():
    if current_user.role != "admin":
        abort(403)
    own = payouts().filter_by(organization_id=current_user.organization_id)
    return render_template_string(PAGE, payouts=db.session.scalars(own), iban=payout_iban)
