"""The only entry: a search path of schema folders → the checked Spec of one server."""

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

_SEEN_FROM = {"place": "", "known": "", "nearest": ""}  # fields that differ with the file a fault is met in


def read(
    folders: Sequence[str],
    names: Names,
    servers: Sequence[str] | None = None,
    given: Config | None = None,
    offer: classes.Offer | None = None,
) -> Schemas:
    """Read, resolve and check what `documents.read` finds. Problems are in the result, sorted by place.

    ``names`` is what the code offers to the files, by kind: handlers, operations, providers, coercions. ``given``: what
    a configuration changes in the one server that is read. ``offer`` imports classes that servers name as providers.
    """
    found = documents.read(folders, servers)
    if not found.problems:
        found.problems.extend(classes.resolve(found, names, offer))
    if given is not None and not found.problems:
        given.apply(found, names)
        found.problems.extend(classes.resolve(found, names, offer))
    if not found.problems:
        expand.add(found)
    if not found.problems:
        found.problems.extend(check.check(found, names))
    if not found.problems:
        found.warnings.extend(check.warnings(found))
    if given is not None and not found.problems:
        given.add_services(found, names)
    found.problems = _told(found.problems)
    found.warnings = _told(found.warnings)
    return found


def _told(problems: Sequence[Problem]) -> list[Problem]:
    """``problems`` by place. What several files inherit is wrong once, not once in each of them; and what is wrong with
    a packaged file follows from what is wrong with those of a user, where there is any."""
    once = {(p.file, p.line, p.column, p.rule, str(p.fields | _SEEN_FROM)): p for p in reversed(problems)}
    sorted_ = [once[key] for key in sorted(once)]
    packaged = os.path.join(paths.shown(paths.SCHEMAS), "")
    return [problem for problem in sorted_ if not problem.file.startswith(packaged)] or sorted_


def load(
    server: str,
    folders: Sequence[str],
    names: Names,
    given: Config | None = None,
    offer: classes.Offer | None = None,
) -> Spec:
    """The Spec of ``server``, as a configuration changes it. Raises SpecError with every problem in its way."""
    found = read(folders, names, [server], given, offer)
    if not found.problems and f"servers/{server}/server" not in found.documents:
        near = metaschema.near(server, documents.servers(folders))
        found.problems.append(Problem.of_argument("unknown_name", "--server", kind="server", name=server, **near))
    if found.problems:
        raise SpecError(found.problems)
    return _spec(found, server)


def _spec(found: Schemas, server: str) -> Spec:
    """What ``server`` is told. The documents have passed their meta-schemas, so that their types are known."""
    value: dict[str, Any] = {place: doc.value for place, doc in found.documents.items()}
    served = value[f"servers/{server}/server"]
    errors: dict[str, Any] = {name: found.error_table(server, name).mapping() for name in served["revisions"]}

    def defined(kind: str, below: str = f"servers/{server}/") -> dict[str, Any]:
        places = [place for place in value if documents.kind(place) == kind and place.startswith(below)]
        return {documents.name(place): value[place] for place in places}

    revisions: dict[str, Any] = {
        name: found.revision(server, name).mapping() | errors[name] for name in served["revisions"]
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
