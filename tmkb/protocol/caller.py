"""Who calls: the owner of a request, as a transport has identified it."""

from __future__ import annotations

from tmkb.schema.values import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    class Permissions(Protocol):
        """What a caller may use. ``kind``: `tools`, `resources` or `prompts`; ``name``: for resources, the URI."""

        def permits(self, kind: str, name: str) -> bool:
            """Return whether the caller may use the definition, or the resource with that URI."""

        def permits_some(self, uri_template: str, values: Mapping[str, str]) -> bool:
            """Return whether the caller may use a resource of the template. ``values``: those of some variables."""

        def missing_scopes(self, kind: str, name: str) -> Sequence[str]:
            """Return the scopes with which the caller could use it; none if no scope helps."""


@record
class Caller:
    """The owner of a request.

    ``principal``: identifies the owner; "" for anonymous requests and for stdio. ``scopes``: of the access token; None
    if the server has no access file, so that everything is permitted. ``roles``: names in the access file. ``view``:
    selects the snapshot that the caller gets; "" for the default one. ``permissions``: what it may use; None for all.
    ``audited``: its name in the audit log; "" if there is none. ``expires``: Unix time at which its token expires; None
    for never.
    """

    principal: str = ""
    scopes: frozenset[str] | None = None
    roles: tuple[str, ...] = ()
    view: str = ""
    permissions: Permissions | None = None
    audited: str = ""
    expires: float | None = None


ANONYMOUS = Caller()
