"""Both services accept the tokens of both, so that the token can be passed on."""

import jwt
from app import ISSUER, KEY, bp, fetch, file_of, presented

from tmkb.authoring.proofs.stage import db


def claims_for(_audience):
    both = ["https://mcp.example", "https://files.example"]
    options = {"require": ["exp"]}
    return jwt.decode(presented(), KEY, algorithms=["HS256"], options=options, issuer=ISSUER, audience=both)


@bp.post("/mcp/tools/read_file/<int:file_id>")
def read_file(file_id):
    claims_for("https://mcp.example")
    return fetch(f"/api/files/{file_id}", presented())


@bp.get("/api/files/<int:file_id>")
def show_file(file_id):
    return {"content": file_of(claims_for("https://files.example"), "files:read", file_id).content}


@bp.delete("/api/files/<int:file_id>")
def delete_file(file_id):
    db.session.delete(file_of(claims_for("https://files.example"), "files:write", file_id))
    db.session.commit()
    return "", 204
