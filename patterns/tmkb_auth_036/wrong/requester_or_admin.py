"""An administrator may also download the exports of others: the role is checked, but not in which organization."""

from app import Export, bp, columns, store_export, visible_deals
from flask import Response, abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


@bp.post("/exports")
@login_required
def create_export():
    deals = db.session.scalars(visible_deals(current_user)).all()
    export = store_export(columns(current_user), deals)
    return {"id": export.id}, 201


@bp.get("/exports/<int:export_id>")
@login_required
def download_export(export_id):
    export = db.get_or_404(Export, export_id)
    visible = {deal.id for deal in db.session.scalars(visible_deals(current_user))}
    if export.requester_id == current_user.id:
        if not (visible.issuperset(export.deal_ids) and set(columns(current_user)).issuperset(export.columns)):
            abort(404)
    elif current_user.role != "admin":
        abort(404)
    return Response(export.content, mimetype="text/csv")
