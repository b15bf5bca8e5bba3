"""The accounts of owner and recipient have to exist."""

from app import Report, send_mail
from celery import shared_task

from tmkb.authoring.proofs.stage import Document, User, db


def permitted(report):
    return db.session.get(User, report.owner_id) and db.session.get(User, report.recipient_id)


def documents_of(report):
    return db.session.scalars(db.select(Document).filter_by(organization_id=report.organization_id, deleted_at=None))


@shared_task(name="send_weekly_reports")
def send_weekly_reports():
    for report in db.session.scalars(db.select(Report).filter_by(paused=False)).all():
        if permitted(report):
            send_mail(report.recipient_id, [document.title for document in documents_of(report)])
        else:
            report.paused = True
    db.session.commit()
