"""The report is paused after it was sent."""

from app import Report, send_mail
from celery import shared_task

from tmkb.authoring.proofs.stage import Document, User, db


def permitted(report):
    admins = db.select(User.id).filter_by(role="admin", organization_id=report.organization_id)
    return {report.owner_id, report.recipient_id} <= {*db.session.scalars(admins)}


def documents_of(report):
    return db.session.scalars(db.select(Document).filter_by(organization_id=report.organization_id, deleted_at=None))


@shared_task(name="send_weekly_reports")
def send_weekly_reports():
    for report in db.session.scalars(db.select(Report).filter_by(paused=False)).all():
        send_mail(report.recipient_id, [document.title for document in documents_of(report)])
        if not permitted(report):
            report.paused = True
    db.session.commit()
