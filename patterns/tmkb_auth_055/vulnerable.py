"""The proxy relies on the consent that the identity provider remembers, which covers every client of the proxy."""

from app import bp, deliver, packed, requested, to_upstream, unpacked
from flask import request


# region example
@bp.get("/authorize")
def authorize():
    return to_upstream(packed(requested()))


@bp.get("/callback")
def callback():
    return deliver(unpacked(request.args["state"]), request.args["code"])


# endregion
