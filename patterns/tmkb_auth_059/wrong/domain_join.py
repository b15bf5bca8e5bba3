"""Users of unknown issuers join the organization of their e-mail domain."""

from app import Connection, Identity, bp, enroll, sign_in, verified_claims

from tmkb.authoring.proofs.stage import User, db


def user_of(claims):
    sso = db.session.scalar(db.select(Connection).filter_by(issuer=claims["iss"]))
    if sso is None:
        domain = claims["email"].lower().rpartition("@")[2]
        sso = db.first_or_404(db.select(Connection).filter_by(domain=domain))
    own = db.select(Identity).filter_by(connection_id=sso.id, subject=claims["sub"])
    link = db.session.scalar(own) or enroll(sso, claims)
    return db.one_or_404(db.select(User).filter_by(id=link.user_id, organization_id=sso.organization_id))


@bp.post("/sso/callback")
def callback():
    return sign_in(user_of(verified_claims()))
