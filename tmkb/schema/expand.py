"""Add the documents without a file: amended revisions of a server, and the tools of its services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tmkb.schema import documents, merge
from tmkb.schema.documents import Schemas
from tmkb.schema.reader import Document


def add(schemas: Schemas) -> None:
    """Add the documents that servers and services define. Definitions with a wrong shape are skipped."""
    for place, doc in [*schemas.documents.items()]:
        if documents.kind(place) == "server":
            added = _amended(schemas, place, doc)
        elif documents.kind(place) == "service":
            added = tools(schemas, place, doc)
        else:
            continue
        for other, document in added:
            schemas.documents[other] = document
            schemas.inherited.add(other)


def tools(schemas: Schemas, place: str, service: Document) -> Iterator[tuple[str, Document]]:
    """Yield the tools of ``service`` with their places, each as a separate document."""
    value = service.mapping()
    listed: Any = value.get("tools") if value.get("enabled") is not False else None
    taken = {*schemas.documents}
    for index, tool in enumerate(listed if isinstance(listed, list) else ()):
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str):
            continue
        other = f"{place.rpartition('/services/')[0]}/tools/{name}"
        if other in taken:
            schemas.problems.append(service.problem("tool_taken", ("tools", index, "name"), name=name))
            continue
        taken.add(other)
        document = service.part(("tools", index))
        base = documents.base(schemas, other)
        yield other, merge.merge(base, document, schemas.problems) if base else document


def _amended(schemas: Schemas, place: str, server: Document) -> Iterator[tuple[str, Document]]:
    amends: Any = server.mapping().get("amends")
    revisions: Any = server.mapping().get("revisions")
    if not isinstance(amends, dict) or not isinstance(revisions, list):
        return
    for name in revisions:
        revision = schemas.documents.get(f"protocol/{name}")
        lifecycle = revision.mapping().get("lifecycle") if revision else None
        if revision is not None and isinstance(lifecycle, str) and isinstance(amends.get(lifecycle), dict):
            amended = merge.merge(revision, server.part(("amends", lifecycle)), schemas.problems)
            yield f"{place.rpartition('/')[0]}/protocol/{name}", amended
