"""One loader compares the starter, and reads the permission on the board again."""

from app import Job, bp, readable_boards
from flask import abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
def job_or_404(job_id):
    job = db.get_or_404(Job, job_id)
    boards = db.session.scalars(readable_boards(current_user)).all()
    if job.user_id != current_user.id or job.board_id not in boards:
        abort(404)
    return job


@bp.get("/jobs/<job_id>")
@login_required
def show_job(job_id):
    job = job_or_404(job_id)
    return {"title": job.title, "state": job.state}


@bp.get("/jobs/<job_id>/result")
@login_required
def show_result(job_id):
    return job_or_404(job_id).result


@bp.get("/jobs/<job_id>/log")
@login_required
def show_log(job_id):
    job = job_or_404(job_id)
    return f"{job.title}: {job.state}, {len(job.result)} cards"


@bp.post("/jobs/<job_id>/cancel")
@login_required
def cancel_job(job_id):
    job = job_or_404(job_id)
    job.state = "cancelled"
    db.session.commit()
    return "", 204


# endregion
