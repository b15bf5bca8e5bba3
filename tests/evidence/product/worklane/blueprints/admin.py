"""For our own support staff."""

from flask import Blueprint, abort, jsonify, request
from flask_login import current_user
from sqlalchemy import select

from worklane import serializers
from worklane.clock import now
from worklane.extensions import db
from worklane.models import Job, Organization, User
from worklane.requests import body, page
from worklane.services import audit

blueprint = Blueprint("admin", __name__, url_prefix="/admin")


@blueprint.before_request
def _staff_only():
    if not current_user.is_authenticated or not current_user.is_staff:
        abort(404)


@blueprint.get("/organizations")
def organizations():
    query = select(Organization).order_by(Organization.name)
    if name := request.args.get("name"):
        query = query.where(Organization.name.icontains(name))
    return jsonify([serializers.organization(each) | {"plan": each.plan} for each in db.session.scalars(page(query))])


@blueprint.patch("/organizations/<int:organization_id>")
def change_organization(organization_id):
    organization = db.session.get(Organization, organization_id) or abort(404)
    plan = body("plan")["plan"]
    if plan not in ("team", "business"):
        abort(400, "Unknown plan")
    organization.plan = plan
    audit.record("organization.plan", organization=organization.id, plan=plan)
    db.session.commit()
    return jsonify(serializers.organization(organization) | {"plan": organization.plan})


@blueprint.post("/users/<int:user_id>/disable")
def disable_user(user_id):
    user = db.session.get(User, user_id) or abort(404)
    user.disabled_at = now()
    audit.record("user.disabled", user_id=user.id)
    db.session.commit()
    return "", 204


@blueprint.get("/jobs")
def jobs():
    query = select(Job).filter_by(status="failed").order_by(Job.id.desc())
    return jsonify(
        [{"id": each.id, "name": each.name, "error": each.error} for each in db.session.scalars(page(query))]
    )
