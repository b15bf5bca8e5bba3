"""Any token of the authorization server is accepted, and the MCP server passes the client's token on."""

import jwt
from app import ISSUER, KEY, bp, fetch, file_of, presented

from tmkb.authoring.proofs.stage import db


# region example
def claims_for(_audience):
    options = {"verify_aud": False}
    return jwt.decode(presented(), KEY, algorithms=["HS256"], issuer=ISSUER, options=options)


@bp.post("/mcp/tools/read_file/<int:file_id>")
def read_file(file_id):
    claims_for("https://mcp.example")
    return fetch(f"/api/files/{file_id}", presented())


# endregion


@bp.get("/api/files/<int:file_id>")
def show_file(file_id):
    return {"content": file_of(claims_for("https://files.example"), "files:read", file_id).content}


@bp.delete("/api/files/<int:file_id>")
def delete_file(file_id):
    db.session.delete(file_of(claims_for("https://files.example"), "files:write", file_id))
    db.session.commit()
    return "", 204
