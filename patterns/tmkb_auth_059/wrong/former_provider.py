"""The account is found correctly, and its current organization is not compared."""

from app import Connection, Identity, bp, enroll, sign_in, verified_claims

from tmkb.authoring.proofs.stage import User, db


def user_of(claims):
    connection = db.first_or_404(db.select(Connection).filter_by(issuer=claims["iss"]))
    known = db.select(Identity).filter_by(connection_id=connection.id, subject=claims["sub"])
    identity = db.session.scalar(known) or enroll(connection, claims)
    return db.get_or_404(User, identity.user_id)


@bp.post("/sso/callback")
def callback():
    return sign_in(user_of(verified_claims()))
