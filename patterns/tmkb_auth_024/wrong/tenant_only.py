"""The report reads only the organization's documents, and is sent as long as it exists."""

from app import Report, send_mail
from celery import shared_task

from tmkb.authoring.proofs.stage import Document, db


def documents_of(report):
    return db.session.scalars(db.select(Document).filter_by(organization_id=report.organization_id, deleted_at=None))


@shared_task(name="send_weekly_reports")
def send_weekly_reports():
    for report in db.session.scalars(db.select(Report).filter_by(paused=False)).all():
        send_mail(report.recipient_id, [document.title for document in documents_of(report)])
    db.session.commit()
