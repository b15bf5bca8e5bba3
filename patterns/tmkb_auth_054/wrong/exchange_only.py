"""The MCP server exchanges the token and does not check for whom it was issued."""

import jwt
from app import ISSUER, KEY, bp, exchange, fetch, file_of, presented

from tmkb.authoring.proofs.stage import db


def claims_for(audience):
    options = {"require": ["exp"]}
    return jwt.decode(presented(), KEY, algorithms=["HS256"], options=options, issuer=ISSUER, audience=audience)


@bp.post("/mcp/tools/read_file/<int:file_id>")
def read_file(file_id):
    return fetch(f"/api/files/{file_id}", exchange(presented(), "https://files.example", "files:read"))


@bp.get("/api/files/<int:file_id>")
def show_file(file_id):
    return {"content": file_of(claims_for("https://files.example"), "files:read", file_id).content}


@bp.delete("/api/files/<int:file_id>")
def delete_file(file_id):
    db.session.delete(file_of(claims_for("https://files.example"), "files:write", file_id))
    db.session.commit()
    return "", 204
