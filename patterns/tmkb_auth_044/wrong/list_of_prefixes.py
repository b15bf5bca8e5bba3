"""The guard compares the path with a list of prefixes."""

from app import admin, bp
from flask import abort, request
from flask_login import current_user, login_required


@bp.before_app_request
@login_required
def only_administrators():
    if (
        request.path.startswith(("/admin", "/api/v1/admin"))
        and request.method != "OPTIONS"
        and current_user.role != "admin"
    ):
        abort(403)


bp.register_blueprint(admin, url_prefix="/admin")
bp.register_blueprint(admin, url_prefix="/api/v1/admin", name="admin_api")
bp.register_blueprint(admin, url_prefix="/console", name="console")
