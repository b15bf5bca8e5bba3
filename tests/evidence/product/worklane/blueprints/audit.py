from flask import Blueprint, g, jsonify
from sqlalchemy import select

from worklane import serializers
from worklane.extensions import db
from worklane.models import AuditEntry
from worklane.policy import require
from worklane.requests import page

blueprint = Blueprint("audit", __name__, url_prefix="/audit")


@blueprint.get("")
@require("organization.manage")
def index():
    query = select(AuditEntry).filter_by(organization_id=g.organization.id).order_by(AuditEntry.id.desc())
    return jsonify([serializers.audit_entry(each) for each in db.session.scalars(page(query))])
