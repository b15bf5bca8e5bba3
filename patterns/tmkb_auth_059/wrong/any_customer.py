"""The issuer must be the tenant of any customer."""

from app import Connection, Identity, bp, enroll, sign_in, verified_claims

from tmkb.authoring.proofs.stage import User, db


def user_of(claims):
    db.first_or_404(db.select(Connection).filter_by(issuer=claims["iss"]))
    email = claims["email"].lower()
    identity = db.session.scalar(db.select(Identity).filter_by(email=email))
    if identity is None:
        connection = db.first_or_404(db.select(Connection).filter_by(domain=email.rpartition("@")[2]))
        identity = enroll(connection, claims)
    return db.get_or_404(User, identity.user_id)


@bp.post("/sso/callback")
def callback():
    return sign_in(user_of(verified_claims()))
