from flask import current_app

from worklane import mail
from worklane.extensions import db
from worklane.models import Notification, User
from worklane.queue import enqueue, job


def notify(user, organization_id, text, by_mail=False):
    """Show a text to a user in the application, and mail it if wanted. The caller commits."""
    db.session.add(Notification(user_id=user.id, organization_id=organization_id, text=text))
    if by_mail:
        enqueue(mail_notification, user_id=user.id, text=text)


@job
def mail_notification(user_id, text):
    user = db.session.get(User, user_id)
    mail.send(user.email, "News from Worklane", f"{text}\n\n{current_app.config['BASE_URL']}")
