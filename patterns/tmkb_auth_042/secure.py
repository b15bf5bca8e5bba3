"""One UPDATE tests and takes the invitation, and only the request that changed the row goes on."""

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
    # region template
    still_open = db.update(Invitation).where(Invitation.id == invitation.id, Invitation.state == "open")
    taken = db.session.execute(still_open.values(state="accepted"))
    if taken.rowcount != 1:
        abort(409)
    current_user.organization_id = invitation.organization_id
    db.session.commit()
    # endregion
    return "", 204


# endregion
