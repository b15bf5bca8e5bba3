"""Providers that a server's YAML names as Python classes: ``providers: {NAME: {provider: "module:Class"}}``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tmkb.errors import Problem
from tmkb.schema import documents
from tmkb.schema.documents import Schemas
from tmkb.schema.metaschema import Names
from tmkb.schema.reader import Document

KEY = "provider"  # of the settings of a provider; it names the class and is no setting
Offer = Callable[[Names, str, str], Names]


def resolve(schemas: Schemas, names: Names, offer: Offer | None) -> Iterator[Problem]:
    """Set ``schemas.offered`` for each server that names classes. Yield a problem for each class that cannot be used.

    Args:
        schemas: all documents.
        names: the names that the code offers to all servers.
        offer: imports the class ``module:Class`` for the provider of a name, and returns the names with those that the
            class offers. None: classes are not allowed.
    """
    for place, doc in schemas.documents.items():
        if documents.kind(place) != "server":
            continue
        offered = names
        for name, target in _classes(doc):
            at = ("providers", name, KEY)
            if offer is None:
                yield doc.problem("python_not_allowed", at, name=target)
                continue
            try:
                offered = offer(offered, name, target)
            except Exception as error:  # whatever the import of a module raises
                yield doc.problem("bad_class", at, name=target, reason=f"{type(error).__name__}: {error}")
        if offered is not names:
            schemas.offered[documents.name(place)] = offered


def _classes(server: Document) -> Iterator[tuple[str, str]]:
    providers = server.mapping().get("providers")
    for name, settings in providers.items() if isinstance(providers, dict) else ():
        target = settings.get(KEY) if isinstance(settings, dict) else None
        if isinstance(target, str):
            yield name, target
