"""Reading of request bodies and pages."""

from flask import abort, current_app, request


def body(*required):
    """The JSON object of the request. Aborts with 400 if it is none or a required key is missing."""
    data = request.get_json(silent=True)
    if not isinstance(data, dict):
        abort(400, "A JSON object is expected")
    if missing := [key for key in required if data.get(key) in (None, "")]:
        abort(400, f"Missing: {', '.join(missing)}")
    return data


def page(query):
    """The query, limited to the page that the request asks for."""
    size = current_app.config["PAGE_SIZE"]
    number = max(1, request.args.get("page", 1, type=int))
    return query.limit(size).offset((number - 1) * size)
