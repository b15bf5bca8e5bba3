"""Any signed-in user who knows the id of a job follows and cancels it."""

from app import Job, bp
from flask_login import login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.get("/jobs/<job_id>")
@login_required
def show_job(job_id):
    job = db.get_or_404(Job, job_id)
    return {"title": job.title, "state": job.state}


@bp.get("/jobs/<job_id>/result")
@login_required
def show_result(job_id):
    return db.get_or_404(Job, job_id).result


@bp.get("/jobs/<job_id>/log")
@login_required
def show_log(job_id):
    job = db.get_or_404(Job, job_id)
    return f"{job.title}: {job.state}, {len(job.result)} cards"


@bp.post("/jobs/<job_id>/cancel")
@login_required
def cancel_job(job_id):
    job = db.get_or_404(Job, job_id)
    job.state = "cancelled"
    db.session.commit()
    return "", 204


# endregion
