"""Each agent gets the tools and files that the delegation names."""

import time

from app import Task, bp, file_of, issued, requested, verified, written
from flask import abort

from tmkb.authoring.proofs.stage import db


def attenuated(parent, body):
    tools, files = body["tools"], body["files"]
    exp = min(parent["exp"], int(time.time()) + 300)
    act = {"sub": body["agent"], "act": parent["act"]}
    return {**parent, "tools": tools, "files": files, "exp": exp, "act": act}


def open_claims():
    claims = verified()
    if not db.session.get(Task, claims["task"]).open:
        abort(401)
    return claims


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
