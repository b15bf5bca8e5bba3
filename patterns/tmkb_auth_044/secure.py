"""The guard belongs to the blueprint, so it runs under every prefix and for nested blueprints."""

from app import admin, bp
from flask import abort, request
from flask_login import current_user, login_required


# region example
# region template
@admin.before_request
@login_required
def only_administrators():
    if request.method != "OPTIONS" and current_user.role != "admin":
        abort(403)


# endregion


bp.register_blueprint(admin, url_prefix="/admin")
bp.register_blueprint(admin, url_prefix="/api/v1/admin", name="admin_api")
bp.register_blueprint(admin, url_prefix="/console", name="console")


# endregion
