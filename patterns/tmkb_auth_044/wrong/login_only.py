"""The guard belongs to the blueprint and requires a login."""

from app import admin, bp
from flask_login import login_required


@admin.before_request
@login_required
def only_administrators():
    """Refuse anonymous requests."""


bp.register_blueprint(admin, url_prefix="/admin")
bp.register_blueprint(admin, url_prefix="/api/v1/admin", name="admin_api")
bp.register_blueprint(admin, url_prefix="/console", name="console")
