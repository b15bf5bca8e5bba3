"""Each report is sent as long as it exists, with the documents of all organizations."""

from app import Report, send_mail
from celery import shared_task

from tmkb.authoring.proofs.stage import Document, db


# region example
@shared_task(name="send_weekly_reports")
def send_weekly_reports():
    for report in db.session.scalars(db.select(Report).filter_by(paused=False)).all():
        documents = db.session.scalars(db.select(Document))
        send_mail(report.recipient_id, [document.title for document in documents])
    db.session.commit()


# endregion
