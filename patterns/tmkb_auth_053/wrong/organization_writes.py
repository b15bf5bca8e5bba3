"""Members may write all notes of their organization, whoever wrote them."""

from app import bp, signed

MIGRATION = """
CREATE VIEW recent_note WITH (security_invoker = true) AS SELECT * FROM note ORDER BY id DESC;
ALTER TABLE note ENABLE ROW LEVEL SECURITY;
CREATE POLICY members ON note USING (organization_id = (SELECT my_organization()));
"""


@bp.get("/config.json")
def client_configuration():
    """Return the key that is part of the public JavaScript."""
    return {"key": signed(role="anon")}
