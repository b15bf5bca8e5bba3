"""Users are limited to the tenant of the token, groups are found by id."""

from app import (
    CUSTOMER_ROLES,
    Credential,
    Group,
    GroupMember,
    Mapping,
    Membership,
    bp,
    requested_activity,
    require,
    scim_organization,
)
from flask import abort, g, request

from tmkb.authoring.proofs.stage import db


@bp.before_request
def load_roles():
    user_id, organization_id = (g.credential.user_id, g.credential.organization_id) if g.credential else (None, None)
    names = db.select(Group.name).join(GroupMember, GroupMember.group_id == Group.id)
    names = names.where(GroupMember.user_id == user_id, Group.organization_id == organization_id)
    mappings = db.select(Mapping.role).where(Mapping.organization_id == organization_id)
    g.roles = set(db.session.scalars(mappings.where(Mapping.group_name.in_(names))))


@bp.put("/mappings/<group_name>")
def map_group(group_name):
    require("admin")
    if request.get_json()["role"] not in CUSTOMER_ROLES:
        abort(403)
    values = {"organization_id": g.credential.organization_id, "group_name": group_name}
    db.session.merge(Mapping(**values, role=request.get_json()["role"]))
    db.session.commit()
    return "", 204


@bp.put("/scim/Groups/<int:group_id>")
def replace_group(group_id):
    organization_id = scim_organization()
    group = db.get_or_404(Group, group_id)
    members = db.select(Membership.user_id).filter(
        Membership.organization_id.in_([organization_id, group.organization_id])
    )
    wanted = {member["value"] for member in request.get_json()["members"]}
    if not wanted <= set(db.session.scalars(members)):
        abort(400)
    group.name = request.get_json()["displayName"]
    db.session.execute(db.delete(GroupMember).filter_by(group_id=group.id))
    for user_id in wanted:
        db.session.add(GroupMember(group_id=group.id, user_id=user_id))
    db.session.commit()
    return "", 204


def set_active(user_id, active):
    one = {"user_id": user_id, "organization_id": scim_organization()}
    if not db.session.execute(db.update(Membership).filter_by(**one).values(active=active)).rowcount:
        abort(404)
    if not active:
        db.session.execute(db.delete(Credential).filter_by(**one))


@bp.patch("/scim/Users/<int:user_id>")
def change_user(user_id):
    set_active(user_id, requested_activity())
    db.session.commit()
    return "", 204


@bp.delete("/scim/Users/<int:user_id>")
def delete_user(user_id):
    set_active(user_id, False)
    db.session.execute(db.delete(Membership).filter_by(user_id=user_id, organization_id=scim_organization()))
    groups = db.select(Group.id).filter_by(organization_id=scim_organization())
    db.session.execute(db.delete(GroupMember).where(GroupMember.user_id == user_id, GroupMember.group_id.in_(groups)))
    db.session.commit()
    return "", 204
