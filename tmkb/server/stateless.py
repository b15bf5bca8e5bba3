"""Reduce a server to what needs no state between requests, so that several processes can share its clients."""

from __future__ import annotations

import copy
from typing import Any

from tmkb.schema import negotiable
from tmkb.schema.model import Spec


def without_sessions(spec: Spec) -> Spec:
    """Return ``spec`` without sessions, tasks and subscriptions, which processes cannot share."""
    names = spec["negotiation"]["stateless"]
    tasks = {spec["revisions"][name].get("tasks", "") for name in names}
    server: Any = copy.deepcopy(spec["server"])
    for capability in server["capabilities"].values():
        for key in ("listChanged", "subscribe", *tasks):
            capability.pop(key, None)
    server["capabilities"] = {
        name: each for name, each in server["capabilities"].items() if name != "extensions" or each
    }
    negotiation = negotiable.negotiation(names, spec["revisions"])
    stateless: Any = {**spec, "server": {**server, "revisions": names}, "negotiation": negotiation}
    return stateless  # type: ignore[no-any-return] # a Spec with less in it
