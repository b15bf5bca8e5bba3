"""Code for reviews: a function that makes the mistake of TMKB-AUTH-006, and one that makes none."""

MISTAKE = """from flask import Blueprint, jsonify, request
from flask_login import current_user, login_required

from app.models import db

bp = Blueprint("profile", __name__)


@bp.patch("/profile")
@login_required
def change_profile():
    for key, value in request.get_json().items():
        setattr(current_user, key, value)
    db.session.commit()
    return jsonify(id=current_user.id, name=current_user.name)
"""
HARMLESS = '''def amount(cents):
    """Return an amount in euros as text."""
    return f"{cents // 100},{cents % 100:02} €"
'''
