"""The account has to exist and to be enabled; role and organization are those of the token."""

from app import Account, bp, read_token
from flask import abort

from tmkb.authoring.proofs.stage import db


def members_of_admin():
    claims = read_token()
    account = db.session.get(Account, int(claims["sub"]))
    if account is None or account.disabled or claims["role"] != "admin":
        abort(403)
    return db.select(Account).filter_by(organization_id=claims["org"])


@bp.get("/admin/members")
def list_members():
    return [member.name for member in db.session.scalars(members_of_admin())]


@bp.delete("/admin/members/<int:account_id>")
def remove_member(account_id):
    member = db.first_or_404(members_of_admin().filter_by(id=account_id))
    member.organization_id = None
    db.session.commit()
    return "", 204
