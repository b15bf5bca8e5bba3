"""The policies read the organization from the metadata in the token, which users edit themselves."""

from app import bp, signed

ORGANIZATION = "current_setting('request.jwt.claims', true)::json->'user_metadata'->>'organization_id'"
MIGRATION = f"""
CREATE VIEW recent_note WITH (security_invoker = true) AS SELECT * FROM note ORDER BY id DESC;
ALTER TABLE note ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_read ON note FOR SELECT
    USING (organization_id = coalesce(({ORGANIZATION})::int, my_organization()));
CREATE POLICY authors_write ON note
    USING (author_id = (SELECT uid()) AND organization_id = (SELECT my_organization()));
"""


@bp.get("/config.json")
def client_configuration():
    """Return the key that is part of the public JavaScript."""
    return {"key": signed(role="anon")}
