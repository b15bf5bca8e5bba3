"""Every change of permissions raises a counter of the account; a token with an older counter is refused."""

from app import Account, bp, read_token
from flask import abort

from tmkb.authoring.proofs.stage import db


# region example
def members_of_admin():
    claims = read_token()
    epoch = db.session.scalar(db.select(Account.epoch).filter_by(id=int(claims["sub"])))
    if epoch is None or claims.get("epoch") != epoch or claims["role"] != "admin" or claims["org"] is None:
        abort(403)
    return db.select(Account).filter_by(organization_id=claims["org"])


@bp.get("/admin/members")
def list_members():
    return [member.name for member in db.session.scalars(members_of_admin())]


@bp.delete("/admin/members/<int:account_id>")
def remove_member(account_id):
    member = db.first_or_404(members_of_admin().filter_by(id=account_id))
    member.organization_id = None
    member.epoch = Account.epoch + 1
    db.session.commit()
    return "", 204


# endregion
