"""The audience only has to begin like the service."""

import jwt
from app import ISSUER, KEY, bp, exchange, fetch, file_of, presented

from tmkb.authoring.proofs.stage import db


def claims_for(audience):
    options = {"verify_aud": False, "require": ["exp"]}
    claims = jwt.decode(presented(), KEY, algorithms=["HS256"], issuer=ISSUER, options=options)
    if not claims.get("aud", "").startswith(audience):
        raise jwt.InvalidAudienceError
    return claims


@bp.post("/mcp/tools/read_file/<int:file_id>")
def read_file(file_id):
    claims_for("https://mcp.example")
    return fetch(f"/api/files/{file_id}", exchange(presented(), "https://files.example", "files:read"))


@bp.get("/api/files/<int:file_id>")
def show_file(file_id):
    return {"content": file_of(claims_for("https://files.example"), "files:read", file_id).content}


@bp.delete("/api/files/<int:file_id>")
def delete_file(file_id):
    db.session.delete(file_of(claims_for("https://files.example"), "files:write", file_id))
    db.session.commit()
    return "", 204
