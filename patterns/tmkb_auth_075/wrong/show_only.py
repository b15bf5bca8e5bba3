"""Only single papers are checked with the newest relations."""

from app import Change, Folder, Group, Paper, bp, check_relations, managed, write_relations
from flask import abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import User, db


def change(**relations):
    db.session.add(Change(organization_id=current_user.organization_id, revision=write_relations(**relations)))


def may_open(paper):
    last = db.select(db.func.max(Change.revision)).filter_by(organization_id=paper.organization_id)
    return check_relations(current_user.id, paper.id, at_least=db.session.scalar(last))


@bp.delete("/groups/<int:group_id>/members/<name>")
@login_required
def remove_member(group_id, name):
    group = managed(Group, group_id)
    user = db.first_or_404(db.select(User).filter_by(name=name))
    change(remove=[(f"group:{group.id}", "member", f"user:{user.id}")])
    db.session.commit()
    return "", 204


@bp.put("/papers/<int:paper_id>/folder")
@login_required
def move_paper(paper_id):
    paper = managed(Paper, paper_id)
    folder = managed(Folder, request.get_json()["folder"])
    change(remove=[(f"paper:{paper.id}", "parent", None)], add=[(f"paper:{paper.id}", "parent", f"folder:{folder.id}")])
    paper.folder_id = folder.id
    db.session.commit()
    return "", 204


def opened_paper(paper_id):
    paper = db.get_or_404(Paper, paper_id)
    if not may_open(paper):
        abort(404)
    return paper


@bp.get("/papers")
@login_required
def list_papers():
    papers = db.session.scalars(db.select(Paper).order_by(Paper.id))
    return [paper.title for paper in papers if check_relations(current_user.id, paper.id)]


@bp.get("/papers/<int:paper_id>")
@login_required
def show_paper(paper_id):
    paper = opened_paper(paper_id)
    return {"title": paper.title, "text": paper.text}


@bp.put("/papers/<int:paper_id>")
@login_required
def edit_paper(paper_id):
    paper = opened_paper(paper_id)
    paper.text = request.get_json()["text"]
    db.session.commit()
    return "", 204
