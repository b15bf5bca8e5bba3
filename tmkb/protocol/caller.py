"""Who calls: the owner of a request, as a transport has identified it."""

from __future__ import annotations

from tmkb.schema.values import record


@record
class Caller:
    """The owner of a request.

    ``principal``: identifies the owner; "" for anonymous requests and for stdio. ``scopes``: of the access token; None
    if the server has no access file, so that everything is permitted. ``roles``: names in the access file. ``view``:
    selects the snapshot that the caller gets; "" for the default one.
    """

    principal: str = ""
    scopes: frozenset[str] | None = None
    roles: tuple[str, ...] = ()
    view: str = ""


ANONYMOUS = Caller()
