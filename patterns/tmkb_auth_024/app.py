"""Weekly reports about the documents of an organization, for its admins. A version of the code sends them."""

from celery import current_app
from sqlalchemy import func
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import Document, db


class Report(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    owner_id = mapped_column(db.Integer, nullable=False)
    recipient_id = mapped_column(db.Integer, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)
    paused = mapped_column(db.Boolean, nullable=False, default=False)


class Mail(db.Model):
    """A mail that was sent; the table stands for the mail server."""

    id = mapped_column(db.Integer, primary_key=True)
    user_id = mapped_column(db.Integer, nullable=False)
    text = mapped_column(db.String, nullable=False)


def send_mail(user_id, lines):
    db.session.add(Mail(user_id=user_id, text="\n".join(lines)))


def event_report(owner, recipient, organization):
    db.session.add(Report(owner_id=owner, recipient_id=recipient, organization_id=organization))


def event_inbox(user):
    """Return the mails to a user; signing in is not a part of this application."""
    return list(db.session.scalars(db.select(Mail.text).filter_by(user_id=user)))


def event_monday():
    """Do what Celery beat does every Monday."""
    current_app.send_task("send_weekly_reports")


def event_document(title, organization):
    db.session.add(Document(title=title, owner_id=1, organization_id=organization))


def event_document_deleted(title):
    db.session.scalars(db.select(Document).filter_by(title=title)).one().deleted_at = func.now()


def event_report_moved(id, organization):
    db.session.get_one(Report, id).organization_id = organization


def state_mails():
    return [[mail.user_id, mail.text] for mail in db.session.scalars(db.select(Mail).order_by(Mail.id))]


def state_paused():
    return [report.paused for report in db.session.scalars(db.select(Report).order_by(Report.id))]
