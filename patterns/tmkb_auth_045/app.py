"""The API key and the members of an organization. A version of the code attaches the guards for administrators."""

from flask import Blueprint, abort, request
from flask_caching import Cache
from flask_login import current_user, login_required
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import User, db


class Settings(db.Model):
    organization_id = mapped_column(db.Integer, primary_key=True)
    api_key = mapped_column(db.String)


cache = Cache()
bp = Blueprint("organization", __name__)
administration = Blueprint("administration", __name__)
reports = Blueprint("reports", __name__)


@bp.before_request
@login_required
def demand_member():
    if request.method != "OPTIONS" and current_user.organization_id is None:
        abort(403)


@administration.before_request
def demand_admin():
    if request.method != "OPTIONS" and current_user.role != "admin":
        abort(403)


@administration.get("/members")
def list_members():
    return [f"{user.name} is {user.role}" for user in db.session.scalars(members())]


@reports.get("/members.csv")
def export_members():
    return "\n".join(f"{user.name},{user.role}" for user in db.session.scalars(members())), {"Content-Type": "text/csv"}


def members():
    return db.select(User).filter_by(organization_id=current_user.organization_id).order_by(User.id)


bp.register_blueprint(administration)


def event_begin():
    db.session.add_all(
        [Settings(organization_id=1, api_key="acme-4200"), Settings(organization_id=2, api_key="globex-31")]
    )


def state_key():
    return db.session.get(Settings, 1).api_key
