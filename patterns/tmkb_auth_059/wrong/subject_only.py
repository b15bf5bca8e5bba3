"""The subject selects the account without its issuer."""

from app import Connection, Identity, bp, enroll, sign_in, verified_claims

from tmkb.authoring.proofs.stage import User, db


def user_of(claims):
    sso = db.first_or_404(db.select(Connection).filter_by(issuer=claims["iss"]))
    own = db.select(Identity).filter_by(subject=claims["sub"])
    link = db.session.scalar(own) or enroll(sso, claims)
    return db.get_or_404(User, link.user_id)


@bp.post("/sso/callback")
def callback():
    return sign_in(user_of(verified_claims()))
