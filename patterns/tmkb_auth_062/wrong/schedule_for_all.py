"""Jobs of the schedule have no user and are open to everybody."""

from app import Job, bp, readable_boards
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


def my_jobs():
    return db.select(Job).where(
        (Job.user_id.is_(None)) | ((Job.user_id == current_user.id) & Job.board_id.in_(readable_boards(current_user)))
    )


@bp.get("/jobs/<job_id>")
@login_required
def show_job(job_id):
    job = db.first_or_404(my_jobs().filter_by(id=job_id))
    return {"title": job.title, "state": job.state}


@bp.get("/jobs/<job_id>/result")
@login_required
def show_result(job_id):
    return db.first_or_404(my_jobs().filter_by(id=job_id)).result


@bp.get("/jobs/<job_id>/log")
@login_required
def show_log(job_id):
    job = db.first_or_404(my_jobs().filter_by(id=job_id))
    return f"{job.title}: {job.state}, {len(job.result)} cards"


@bp.post("/jobs/<job_id>/cancel")
@login_required
def cancel_job(job_id):
    job = db.first_or_404(my_jobs().filter_by(id=job_id))
    job.state = "cancelled"
    db.session.commit()
    return "", 204
