"""Row-level security is off, and the filter by organization is in the query that the browser sends."""

from app import bp, signed

# region example
MIGRATION = "CREATE VIEW recent_note AS SELECT * FROM note ORDER BY id DESC"


@bp.get("/config.json")
def client_configuration():
    """Return the key that is part of the public JavaScript."""
    return {"key": signed(role="anon")}


# endregion
