"""Each service accepts only tokens that were issued for it, and the MCP server exchanges the client's token."""

import jwt
from app import ISSUER, KEY, bp, exchange, fetch, file_of, presented

from tmkb.authoring.proofs.stage import db


# region example
# region template
def claims_for(audience):
    return jwt.decode(presented(), KEY, ["HS256"], {"require": ["exp"]}, issuer=ISSUER, audience=audience)


@bp.post("/mcp/tools/read_file/<int:file_id>")
def read_file(file_id):
    claims_for("https://mcp.example")
    return fetch(f"/api/files/{file_id}", exchange(presented(), "https://files.example", "files:read"))


# endregion
# endregion


@bp.get("/api/files/<int:file_id>")
def show_file(file_id):
    return {"content": file_of(claims_for("https://files.example"), "files:read", file_id).content}


@bp.delete("/api/files/<int:file_id>")
def delete_file(file_id):
    db.session.delete(file_of(claims_for("https://files.example"), "files:write", file_id))
    db.session.commit()
    return "", 204
