"""SCIM finds users and groups by id alone, a group's name gives its role everywhere, and credentials stay."""

from app import Group, GroupMember, Mapping, Membership, bp, requested_activity, require, scim_organization
from flask import g, request

from tmkb.authoring.proofs.stage import db


# region example
@bp.before_request
def load_roles():
    user_id = g.credential.user_id if g.credential else None
    names = db.select(Group.name).join(GroupMember, GroupMember.group_id == Group.id)
    names = names.where(GroupMember.user_id == user_id)
    g.roles = set(db.session.scalars(db.select(Mapping.role).where(Mapping.group_name.in_(names))))


@bp.put("/mappings/<group_name>")
def map_group(group_name):
    require("admin")
    values = {"organization_id": g.credential.organization_id, "group_name": group_name}
    db.session.merge(Mapping(**values, role=request.get_json()["role"]))
    db.session.commit()
    return "", 204


@bp.put("/scim/Groups/<int:group_id>")
def replace_group(group_id):
    scim_organization()
    group = db.get_or_404(Group, group_id)
    wanted = {member["value"] for member in request.get_json()["members"]}
    group.name = request.get_json()["displayName"]
    db.session.execute(db.delete(GroupMember).filter_by(group_id=group.id))
    for user_id in wanted:
        db.session.add(GroupMember(group_id=group.id, user_id=user_id))
    db.session.commit()
    return "", 204


@bp.patch("/scim/Users/<int:user_id>")
def change_user(user_id):
    scim_organization()
    db.session.execute(db.update(Membership).filter_by(user_id=user_id).values(active=requested_activity()))
    db.session.commit()
    return "", 204


@bp.delete("/scim/Users/<int:user_id>")
def delete_user(user_id):
    scim_organization()
    db.session.execute(db.delete(Membership).filter_by(user_id=user_id))
    db.session.commit()
    return "", 204


# endregion
