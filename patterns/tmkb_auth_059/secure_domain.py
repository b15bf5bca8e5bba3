"""The e-mail address selects the account, and only the tenant of its domain may vouch for it."""

from app import Connection, Identity, bp, enroll, sign_in, verified_claims

from tmkb.authoring.proofs.stage import User, db


# region example
def user_of(claims):
    email = claims["email"].lower()
    domain = email.rpartition("@")[2]
    connection = db.first_or_404(db.select(Connection).filter_by(domain=domain, issuer=claims["iss"]))
    known = db.select(Identity).filter_by(email=email, connection_id=connection.id)
    identity = db.session.scalar(known) or enroll(connection, claims)
    members = db.select(User).filter_by(organization_id=connection.organization_id)
    return db.first_or_404(members.filter_by(id=identity.user_id))


@bp.post("/sso/callback")
def callback():
    return sign_in(user_of(verified_claims()))


# endregion
