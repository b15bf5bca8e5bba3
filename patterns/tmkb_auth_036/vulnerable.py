"""The export has its own query and columns, wider than those of the page, and its id is enough to download it."""

from app import Deal, Export, bp, store_export
from flask import Response
from flask_login import current_user, login_required

from tmkb.authoring.proofs.stage import db


# region example
@bp.post("/exports")
@login_required
def create_export():
    deals = db.session.scalars(db.select(Deal).filter_by(organization_id=current_user.organization_id)).all()
    export = store_export(["customer", "amount", "margin"], deals)
    return {"id": export.id}, 201


@bp.get("/exports/<int:export_id>")
@login_required
def download_export(export_id):
    export = db.get_or_404(Export, export_id)
    return Response(export.content, mimetype="text/csv")


# endregion
