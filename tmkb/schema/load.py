"""Load schemas: from a search path of folders to the checked Spec of one server."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from typing import Any

from tmkb.errors import Problem, SpecError
from tmkb.schema import check, classes, documents, expand, metaschema, negotiable, paths
from tmkb.schema.configuration import Config
from tmkb.schema.documents import Schemas
from tmkb.schema.metaschema import Names
from tmkb.schema.model import Spec

_SEEN_FROM = {"place": "", "known": "", "nearest": ""}  # fields that differ between files that inherit a problem


def read(
    folders: Sequence[str],
    names: Names,
    servers: Sequence[str] | None = None,
    config: Config | None = None,
    offer: classes.Offer | None = None,
) -> Schemas:
    """Read, resolve and check all documents. Problems are in the result, sorted by position.

    ``names``: the names that the code offers, by kind: handlers, operations, providers and others. ``servers``: read
    only these. ``config``: the configuration to apply to the one server in ``servers``. ``offer``: imports the classes
    that servers name as providers; without it they are not allowed.
    """
    schemas = documents.read(folders, servers)
    if not schemas.problems:
        schemas.problems.extend(classes.resolve(schemas, names, offer))
    if config is not None and not schemas.problems:
        config.apply(schemas, names)
        schemas.problems.extend(classes.resolve(schemas, names, offer))
    if not schemas.problems:
        expand.add(schemas)
    if not schemas.problems:
        schemas.problems.extend(check.check(schemas, names))
    if not schemas.problems:
        schemas.warnings.extend(check.warnings(schemas))
    if config is not None and not schemas.problems:
        config.add_services(schemas, names)
    schemas.problems = _distinct(schemas.problems)
    schemas.warnings = _distinct(schemas.warnings)
    return schemas


def _distinct(problems: Sequence[Problem]) -> list[Problem]:
    """Return ``problems`` sorted by position, each once even if several files inherit it.

    Problems of packaged files are dropped if a user's file has any: they follow from those.
    """
    once = {(p.file, p.line, p.column, p.rule, str(p.fields | _SEEN_FROM)): p for p in reversed(problems)}
    sorted_ = [once[key] for key in sorted(once)]
    packaged = os.path.join(paths.shown(paths.SCHEMAS), "")
    return [problem for problem in sorted_ if not problem.file.startswith(packaged)] or sorted_


def load(
    server: str,
    folders: Sequence[str],
    names: Names,
    config: Config | None = None,
    offer: classes.Offer | None = None,
) -> Spec:
    """Return the Spec of ``server``, with ``config`` applied.

    Raises:
        SpecError: with every problem of its documents.
    """
    schemas = read(folders, names, [server], config, offer)
    if not schemas.problems and f"servers/{server}/server" not in schemas.documents:
        near = metaschema.near(server, documents.servers(folders))
        schemas.problems.append(Problem.of_argument("unknown_name", "--server", kind="server", name=server, **near))
    if schemas.problems:
        raise SpecError(schemas.problems)
    return _spec(schemas, server)


def _spec(schemas: Schemas, server: str) -> Spec:
    """Build the Spec. Meta-schemas have checked the documents, so their types are known."""
    value: dict[str, Any] = {place: doc.value for place, doc in schemas.documents.items()}
    served = value[f"servers/{server}/server"]
    errors: dict[str, Any] = {name: schemas.error_table(server, name).mapping() for name in served["revisions"]}

    def defined(kind: str, below: str = f"servers/{server}/") -> dict[str, Any]:
        places = [place for place in value if documents.kind(place) == kind and place.startswith(below)]
        return {documents.name(place): value[place] for place in places}

    revisions: dict[str, Any] = {
        name: schemas.revision(server, name).mapping() | errors[name] for name in served["revisions"]
    }
    return {
        "server": served,
        "tools": defined("tool"),
        "prompts": defined("prompt"),
        "resources": defined("resource"),
        "revisions": revisions,
        "negotiation": negotiable.negotiation(served["revisions"], revisions),
        "lifecycles": defined("lifecycle", "lifecycle/"),
        "types": value["errors"]["types"],
    }
