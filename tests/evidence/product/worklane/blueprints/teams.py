from flask import Blueprint, abort, g, jsonify
from flask_login import login_required
from sqlalchemy import select

from worklane import serializers
from worklane.extensions import db
from worklane.models import Team, TeamMember
from worklane.policy import require
from worklane.requests import body

blueprint = Blueprint("teams", __name__, url_prefix="/teams")


@blueprint.get("")
@login_required
def index():
    query = select(Team).filter_by(organization_id=g.organization.id).order_by(Team.name)
    return jsonify([serializers.team(each) for each in db.session.scalars(query)])


@blueprint.post("")
@require("members.manage")
def create():
    data = body("name")
    team = Team(organization_id=g.organization.id, name=data["name"], lead_id=data.get("lead_id"))
    db.session.add(team)
    db.session.commit()
    return jsonify(serializers.team(team)), 201


@blueprint.put("/<int:team_id>/members/<int:user_id>")
@require("members.manage")
def add_member(team_id, user_id):
    team = _team(team_id)
    if user_id not in [each.user_id for each in g.organization.memberships]:
        abort(404, "No such member")
    if user_id not in [each.user_id for each in team.members]:
        team.members.append(TeamMember(user_id=user_id))
    db.session.commit()
    return jsonify(serializers.team(team))


@blueprint.delete("/<int:team_id>/members/<int:user_id>")
@require("members.manage")
def remove_member(team_id, user_id):
    team = _team(team_id)
    for row in [each for each in team.members if each.user_id == user_id]:
        team.members.remove(row)
    db.session.commit()
    return "", 204


@blueprint.delete("/<int:team_id>")
@require("members.manage")
def delete(team_id):
    db.session.delete(_team(team_id))
    db.session.commit()
    return "", 204


def _team(team_id):
    return db.session.scalar(select(Team).filter_by(id=team_id, organization_id=g.organization.id)) or abort(404)
