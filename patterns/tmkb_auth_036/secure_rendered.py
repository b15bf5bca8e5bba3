"""No file is stored: each download is built anew from the rows and columns that its requester sees at that time."""

from app import Export, bp, columns, to_csv, visible_deals
from flask import Response
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.post("/exports")
@login_required
def create_export():
    export = Export(requester_id=current_user.id)
    db.session.add(export)
    db.session.commit()
    return {"id": export.id}, 201


@bp.get("/exports/<int:export_id>")
@login_required
def download_export(export_id):
    db.first_or_404(db.select(Export).filter_by(id=export_id, requester_id=current_user.id))
    content = to_csv(columns(current_user), db.session.scalars(visible_deals(current_user)))
    return Response(content, mimetype="text/csv")


# endregion
