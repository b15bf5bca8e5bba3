"""An unknown identity is linked to the account with the same e-mail address."""

from app import Connection, Identity, bp, enroll, sign_in, verified_claims

from tmkb.authoring.proofs.stage import User, db


def user_of(claims):
    connection = db.first_or_404(db.select(Connection).filter_by(issuer=claims["iss"]))
    known = db.select(Identity).filter_by(connection_id=connection.id, subject=claims["sub"])
    identity = db.session.scalar(known)
    if identity is None:
        identity = db.session.scalar(db.select(Identity).filter_by(email=claims["email"].lower()))
    return db.get_or_404(User, (identity or enroll(connection, claims)).user_id)


@bp.post("/sso/callback")
def callback():
    return sign_in(user_of(verified_claims()))
