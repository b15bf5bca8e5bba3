"""The state is loaded by its handle and then compared with the caller, as with a cache or a map of sessions."""

from app import Contact, Import, bp
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def started_import(handle):
    started = db.get_or_404(Import, handle)
    if (started.user_id, started.organization_id) != (current_user.id, current_user.organization_id):
        abort(404)
    if current_user.role != "admin":
        abort(403)
    return started


@bp.get("/imports/<handle>")
@login_required
def preview_import(handle):
    return {"rows": started_import(handle).rows}


@bp.post("/imports/<handle>/rows")
@login_required
def add_rows(handle):
    started = started_import(handle)
    started.rows = started.rows + request.get_json()["rows"]
    db.session.commit()
    return "", 204


@bp.post("/imports/<handle>/finish")
@login_required
def finish_import(handle):
    started = started_import(handle)
    for name in started.rows:
        db.session.add(Contact(name=name, organization_id=started.organization_id, created_by=started.user_id))
    db.session.delete(started)
    db.session.commit()
    return "", 204


@bp.delete("/imports/<handle>")
@login_required
def cancel_import(handle):
    db.session.delete(started_import(handle))
    db.session.commit()
    return "", 204


# endregion
