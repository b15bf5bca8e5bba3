"""Every signed-in user passes the policies."""

from app import bp, signed

MIGRATION = """
CREATE VIEW recent_note WITH (security_invoker = true) AS SELECT * FROM note ORDER BY id DESC;
ALTER TABLE note ENABLE ROW LEVEL SECURITY;
CREATE POLICY signed_in ON note USING (uid() IS NOT NULL);
"""


@bp.get("/config.json")
def client_configuration():
    """Return the key that is part of the public JavaScript."""
    return {"key": signed(role="anon")}
