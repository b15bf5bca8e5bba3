"""The issuer selects the organization, and issuer and subject together select the account."""

from app import Connection, Identity, bp, enroll, sign_in, verified_claims

from tmkb.authoring.proofs.stage import User, db


# region example
# region template
def user_of(claims):
    sso = db.first_or_404(db.select(Connection).filter_by(issuer=claims["iss"]))
    own = db.select(Identity).filter_by(connection_id=sso.id, subject=claims["sub"])
    link = db.session.scalar(own) or enroll(sso, claims)
    return db.one_or_404(db.select(User).filter_by(id=link.user_id, organization_id=sso.organization_id))


# endregion


@bp.post("/sso/callback")
def callback():
    return sign_in(user_of(verified_claims()))


# endregion
