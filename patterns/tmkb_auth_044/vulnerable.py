"""The administration is guarded by a prefix of the path, and its pages answer under other spellings as well."""

from flask import Blueprint, abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db

# region example
bp = Blueprint("site", __name__)
admin = Blueprint("admin", __name__)


@bp.before_app_request
@login_required
def only_administrators():
    if request.path.startswith("/admin/") and current_user.role != "admin":
        abort(403)


@bp.get("/welcome")
@login_required
def welcome():
    return {"name": current_user.name, "theme": request.args.get("theme", "light")}


@admin.get("/", strict_slashes=False)
def overview():
    return {"users": db.session.scalar(db.select(db.func.count(User.id)))}


@admin.get("/users")
def users():
    return {"names": list(db.session.scalars(db.select(User.name).order_by(User.id)))}


bp.register_blueprint(admin, url_prefix="/admin")
bp.register_blueprint(admin, url_prefix="/Admin", name="admin_before_the_move")
bp.register_blueprint(admin, url_prefix="/api/v1/admin", name="admin_api")


# endregion
