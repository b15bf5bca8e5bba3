"""Background jobs, in the manner of Celery: a function marked @job runs later in the worker.

    @job
    def send_welcome(user_id): ...

    enqueue(send_welcome, user_id=7)

Arguments are stored as JSON. `flask worker` runs what is queued. There is no request in the worker: neither
current_user nor g.
"""

import functools
import logging

from sqlalchemy import select

from worklane.extensions import db
from worklane.models import Job

log = logging.getLogger(__name__)
_jobs = {}


def job(function):
    _jobs[function.__name__] = function

    @functools.wraps(function)
    def direct(*args, **kwargs):
        return function(*args, **kwargs)

    return direct


def enqueue(function, **arguments):
    """Store a call of a job. The caller commits."""
    row = Job(name=function.__name__, arguments=arguments)
    db.session.add(row)
    db.session.flush()
    return row


def run_pending():
    """Run all queued jobs, also those that jobs enqueue. Returns the jobs that failed."""
    failed = []
    while row := db.session.scalar(select(Job).filter_by(status="queued").order_by(Job.id).limit(1)):
        row.status = "done"
        db.session.commit()
        try:
            _jobs[row.name](**row.arguments)
            db.session.commit()
        except Exception as error:
            log.exception("job %s failed", row.name)
            db.session.rollback()
            row.status, row.error = "failed", type(error).__name__
            db.session.commit()
            failed.append(row)
    return failed
