from worklane.extensions import db
from worklane.models import OutgoingMail


def send(recipient, subject, body):
    """Hand a mail to the gateway. The caller commits."""
    db.session.add(OutgoingMail(recipient=recipient, subject=subject, body=body))
