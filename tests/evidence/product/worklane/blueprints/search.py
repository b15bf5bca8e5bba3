from flask import Blueprint, abort, g, jsonify, request
from flask_login import login_required

from worklane.services import search

blueprint = Blueprint("search", __name__, url_prefix="/search")


@blueprint.get("")
@login_required
def index():
    words = request.args.get("q", "").strip()
    if len(words) < 2:
        abort(400, "Search for at least two letters")
    return jsonify(
        [
            {
                "kind": entry.kind,
                "id": entry.object_id,
                "title": entry.title,
                "excerpt": search.excerpt(entry.text, words),
            }
            for entry in search.find(g.organization.id, words)
        ]
    )
