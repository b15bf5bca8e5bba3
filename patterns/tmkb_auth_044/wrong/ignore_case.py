"""The guard compares the path without regard to case and to the slash at the end."""

import re

from app import admin, bp
from flask import abort, request
from flask_login import current_user, login_required


@bp.before_app_request
@login_required
def only_administrators():
    if (
        re.match(r"/admin(/|$)", request.path, re.IGNORECASE)
        and request.method != "OPTIONS"
        and current_user.role != "admin"
    ):
        abort(403)


bp.register_blueprint(admin, url_prefix="/admin")
bp.register_blueprint(admin, url_prefix="/api/v1/admin", name="admin_api")
bp.register_blueprint(admin, url_prefix="/console", name="console")
