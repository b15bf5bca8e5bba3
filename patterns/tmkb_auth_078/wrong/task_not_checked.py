"""A token is valid until it expires, also when its task is closed."""

import time

from app import bp, file_of, issued, requested, verified, written
from flask import abort


def attenuated(parent, body):
    tools, files = body["tools"], body["files"]
    if not (set(tools) <= set(parent["tools"]) and set(files) <= set(parent["files"])):
        abort(403)
    exp = min(parent["exp"], int(time.time()) + 300)
    act = {"sub": body["agent"], "act": parent["act"]}
    return {**parent, "tools": tools, "files": files, "exp": exp, "act": act}


def open_claims():
    return verified()


@bp.post("/delegations")
def delegate():
    return {"token": issued(attenuated(open_claims(), requested()))}, 201


def file_for(claims, tool, file_id):
    if tool not in claims["tools"] or file_id not in claims["files"]:
        abort(403)
    return file_of(claims["sub"], tool, file_id)


@bp.get("/files/<int:file_id>")
def read_file(file_id):
    return {"content": file_for(open_claims(), "read", file_id).content}


@bp.put("/files/<int:file_id>")
def write_file(file_id):
    claims = open_claims()
    return written(file_for(claims, "write", file_id), claims)
