"""The table has policies, and the view still runs with the permissions of its owner."""

from app import bp, signed

MIGRATION = """
CREATE VIEW recent_note AS SELECT * FROM note ORDER BY id DESC;
ALTER TABLE note ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_read ON note FOR SELECT USING (organization_id = (SELECT my_organization()));
CREATE POLICY authors_write ON note
    USING (author_id = (SELECT uid()) AND organization_id = (SELECT my_organization()));
"""


@bp.get("/config.json")
def client_configuration():
    """Return the key that is part of the public JavaScript."""
    return {"key": signed(role="anon")}
