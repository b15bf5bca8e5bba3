"""An invitation is looked at and then taken; what happens in between, the second step does not see."""

from flask import Blueprint, abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


class Invitation(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    code = db.Column(db.String, nullable=False, unique=True)
    organization_id = db.Column(db.ForeignKey("organization.id"), nullable=False)
    state = db.Column(db.String, nullable=False, default="open")


# region example
bp = Blueprint("invitations", __name__)


@bp.post("/invitations/<code>/accept")
@login_required
def accept(code):
    invitation = db.first_or_404(db.select(Invitation).filter_by(code=code))
    if invitation.state != "open":
        abort(409)
    invitation.state = "accepted"
    current_user.organization_id = invitation.organization_id
    db.session.commit()
    return "", 204


# endregion
