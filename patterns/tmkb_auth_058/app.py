"""Reports of organizations. A version of the code has a middleware and the handlers behind it.

The middleware stands for a proxy, a gateway or the middleware of a frontend framework. A request for the host
`reports.internal` reaches the service without it, as from another container of the same network.
"""

from flask import Blueprint, request
from sqlalchemy.orm import mapped_column

from tmkb.authoring.proofs.stage import db


class Report(db.Model):
    id = mapped_column(db.Integer, primary_key=True)
    text = mapped_column(db.String, nullable=False)
    organization_id = mapped_column(db.Integer, nullable=False)


bp = Blueprint("reports", __name__)


def is_direct():
    """Return whether the request has not passed through the middleware."""
    return request.host == "reports.internal"


def event_write(organization, text):
    """Store a report, and return its id."""
    report = Report(organization_id=organization, text=text)
    db.session.add(report)
    db.session.flush()
    return {"id": report.id}


def state_reports():
    return list(db.session.scalars(db.select(Report.text).order_by(Report.id)))
