"""The guard belongs to the blueprint and lets requests pass that only read."""

from app import admin, bp
from flask import abort, request
from flask_login import current_user, login_required


@admin.before_request
@login_required
def only_administrators():
    if request.method == "POST" and current_user.role != "admin":
        abort(403)


bp.register_blueprint(admin, url_prefix="/admin")
bp.register_blueprint(admin, url_prefix="/api/v1/admin", name="admin_api")
bp.register_blueprint(admin, url_prefix="/console", name="console")
