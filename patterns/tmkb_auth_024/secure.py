"""A weekly report whose owner is looked up again at every run, and which reads through the owner's organization."""

from celery import shared_task

from tmkb.authoring.proofs.stage import Document, User, db


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
        # region template
        owner = db.session.get(User, report.owner_id)
        if owner is None or owner.organization_id != report.organization_id:
            report.paused = True
            continue
        documents = db.session.scalars(db.select(Document).filter_by(organization_id=owner.organization_id))
        # endregion
        send_mail(report.email, [document.title for document in documents])
    db.session.commit()


# endregion
