"""Summarize all offered revisions for negotiation, so that a session need not read each of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tmkb.schema.model import Negotiation, Revision


def negotiation(names: Sequence[str], revisions: Mapping[str, Revision]) -> Negotiation:
    """Return the summary of the revisions ``names``, in the order in which the server offers them.

    ``preferred`` is the first revision with a handshake, else the first of all.
    """
    stateless = [name for name in names if "request_metadata" in revisions[name]]
    handshakes = [name for name in names if name not in stateless]
    params: dict[str, str] = {}
    for name in names:
        for method, rules in revisions[name]["methods"].items():
            if "negotiates" in rules:
                params.setdefault(method, rules["negotiates"])
    return {"preferred": (handshakes or [*names])[0], "stateless": stateless, "version_params": params}
