"""Documents that have no file of their own: revisions as a server amends them, and the tools of its services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tmkb.schema import documents, merge
from tmkb.schema.documents import Schemas
from tmkb.schema.reader import Document


def add(found: Schemas) -> None:
    """Add to ``found`` what follows from its servers and services, as far as they have the right shape."""
    for place, doc in [*found.documents.items()]:
        if documents.kind(place) == "server":
            added = _amended(found, place, doc)
        elif documents.kind(place) == "service":
            added = tools(found, place, doc)
        else:
            continue
        for other, document in added:
            found.documents[other] = document
            found.inherited.add(other)


def tools(found: Schemas, place: str, service: Document) -> Iterator[tuple[str, Document]]:
    """The tools of ``service`` with their places, each as if it stood in a file of its own."""
    value = service.mapping()
    listed: Any = value.get("tools") if value.get("enabled") is not False else None
    for index, tool in enumerate(listed if isinstance(listed, list) else ()):
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str):
            continue
        other = f"{place.rpartition('/services/')[0]}/tools/{name}"
        if other in found.documents:
            found.problems.append(service.problem("tool_taken", ("tools", index, "name"), name=name))
            continue
        written = service.part(("tools", index))
        base = documents.base(found, other)
        yield other, merge.merge(base, written, found.problems) if base else written


def _amended(found: Schemas, place: str, server: Document) -> Iterator[tuple[str, Document]]:
    amends: Any = server.mapping().get("amends")
    revisions: Any = server.mapping().get("revisions")
    if not isinstance(amends, dict) or not isinstance(revisions, list):
        return
    for name in revisions:
        revision = found.documents.get(f"protocol/{name}")
        lifecycle = revision.mapping().get("lifecycle") if revision else None
        if revision is not None and isinstance(lifecycle, str) and isinstance(amends.get(lifecycle), dict):
            amended = merge.merge(revision, server.part(("amends", lifecycle)), found.problems)
            yield f"{place.rpartition('/')[0]}/protocol/{name}", amended
