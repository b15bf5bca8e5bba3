"""A weekly report that goes to whoever once asked for it, with whatever the database holds."""

from celery import shared_task

from tmkb.authoring.proofs.stage import Document, db


class Report(db.Model):
    id = db.Column(db.Integer, primary_key=True)
    owner_id = db.Column(db.Integer, nullable=False)
    organization_id = db.Column(db.Integer, nullable=False)
    email = db.Column(db.String, nullable=False)
    paused = db.Column(db.Boolean, nullable=False, default=False)


outbox = []


def send_mail(to, lines):
    outbox.append((to, lines))


# region example
@shared_task
def send_weekly_reports():
    for report in db.session.scalars(db.select(Report).filter_by(paused=False)):
        documents = db.session.scalars(db.select(Document))
        send_mail(report.email, [document.title for document in documents])
    db.session.commit()


# endregion
