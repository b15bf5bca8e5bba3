"""The orchestrator hands its own token to the other agents, and the tools check only what the user may do."""

from app import bp, file_of, presented, requested, verified, written


# region example
@bp.post("/delegations")
def delegate():
    verified()
    requested()
    return {"token": presented()}, 201


def file_for(claims, tool, file_id):
    return file_of(claims["sub"], tool, file_id)


@bp.get("/files/<int:file_id>")
def read_file(file_id):
    return {"content": file_for(verified(), "read", file_id).content}


@bp.put("/files/<int:file_id>")
def write_file(file_id):
    claims = verified()
    return written(file_for(claims, "write", file_id), claims)


# endregion
