"""One guard for the application: only administrators reach an endpoint that is not listed as open."""

from app import admin, bp
from flask import abort, request
from flask_login import current_user, login_required

# region example
OPEN_TO_MEMBERS = {"site.welcome"}


@bp.before_app_request
@login_required
def only_administrators():
    if request.method == "OPTIONS" or request.endpoint in OPEN_TO_MEMBERS:
        return
    if current_user.role != "admin":
        abort(403)


bp.register_blueprint(admin, url_prefix="/admin")
bp.register_blueprint(admin, url_prefix="/api/v1/admin", name="admin_api")
bp.register_blueprint(admin, url_prefix="/console", name="console")


# endregion
