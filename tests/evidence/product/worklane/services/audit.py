from flask import g
from flask_login import current_user

from worklane.extensions import db
from worklane.models import AuditEntry


def record(action, **details):
    """Note what the current user did. The caller commits."""
    organization = g.get("organization")
    db.session.add(
        AuditEntry(
            organization_id=organization.id if organization else None,
            actor_id=current_user.id if current_user.is_authenticated else None,
            action=action,
            details=details,
        )
    )
