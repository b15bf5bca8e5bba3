"""Policies limit each table that clients reach, and views run with the caller's permissions."""

from app import bp, signed

# region example
# region template
MIGRATION = """
ALTER TABLE note ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_read ON note FOR SELECT USING (organization_id = (SELECT my_organization()));
CREATE POLICY authors_write ON note
    USING (author_id = (SELECT uid()) AND organization_id = (SELECT my_organization()));
"""
# endregion
MIGRATION += "CREATE VIEW recent_note WITH (security_invoker = true) AS SELECT * FROM note ORDER BY id DESC"


@bp.get("/config.json")
def client_configuration():
    """Return the key that is part of the public JavaScript."""
    return {"key": signed(role="anon")}


# endregion
