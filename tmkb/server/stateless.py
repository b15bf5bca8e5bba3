"""The part of a server that needs no memory between requests, for processes that share its clients."""

from __future__ import annotations

import copy
from typing import Any

from tmkb.schema import model
from tmkb.schema.model import Spec


def without_sessions(spec: Spec) -> Spec:
    """Return ``spec`` without sessions, tasks and subscriptions, which one process would keep from the others."""
    names = spec["negotiation"]["stateless"]
    tasks = {spec["revisions"][name].get("tasks", "") for name in names}
    server: Any = copy.deepcopy(spec["server"])
    for capability in server["capabilities"].values():
        for key in ("listChanged", "subscribe", *tasks):
            capability.pop(key, None)
    server["capabilities"] = {
        name: each for name, each in server["capabilities"].items() if name != "extensions" or each
    }
    negotiation = model.negotiation(names, spec["revisions"])
    stateless: Any = {**spec, "server": {**server, "revisions": names}, "negotiation": negotiation}
    return stateless  # type: ignore[no-any-return] # a Spec with less in it
