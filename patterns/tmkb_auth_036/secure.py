"""The export uses the rows and columns of the page, and only a requester who may still see all of them downloads it."""

from app import Export, bp, columns, store_export, visible_deals
from flask import Response, abort
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
# region template
@bp.post("/exports")
@login_required
def create_export():
    # The page of deals uses these two functions, too.
    deals = db.session.scalars(visible_deals(current_user)).all()
    export = store_export(columns(current_user), deals)
    return {"id": export.id}, 201


# endregion


@bp.get("/exports/<int:export_id>")
@login_required
def download_export(export_id):
    export = db.first_or_404(db.select(Export).filter_by(id=export_id, requester_id=current_user.id))
    visible = {deal.id for deal in db.session.scalars(visible_deals(current_user))}
    if not (visible.issuperset(export.deal_ids) and set(columns(current_user)).issuperset(export.columns)):
        abort(404)
    return Response(export.content, mimetype="text/csv")


# endregion
