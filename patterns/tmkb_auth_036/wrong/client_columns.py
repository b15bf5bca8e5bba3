"""The page sends the columns that it shows."""

from app import Export, bp, columns, store_export, visible_deals
from flask import Response, abort, request
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


@bp.post("/exports")
@login_required
def create_export():
    deals = db.session.scalars(visible_deals(current_user)).all()
    export = store_export((request.get_json(silent=True) or {}).get("columns", columns(current_user)), deals)
    return {"id": export.id}, 201


@bp.get("/exports/<int:export_id>")
@login_required
def download_export(export_id):
    export = db.first_or_404(db.select(Export).filter_by(id=export_id, requester_id=current_user.id))
    visible = {deal.id for deal in db.session.scalars(visible_deals(current_user))}
    if not visible.issuperset(export.deal_ids):
        abort(404)
    return Response(export.content, mimetype="text/csv")
