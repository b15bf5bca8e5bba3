"""Reads, checks and prepares everything that a service needs, and keeps it for the next start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tmkb.providers import registry
from tmkb.schema import configuration, load, paths, problems
from tmkb.schema.model import Spec
from tmkb.schema.values import JsonObject
from tmkb.server import cache, sources


def prepare(request: JsonObject, caching: bool = True) -> cache.Entry:
    """The entry for ``request``, made from its sources. Raises SpecError, and keeps nothing then."""
    asked: Any = request
    # What stands in a checkout is edited without a new version; then our own code is a source too.
    code = [] if paths.ROOT == paths.DATA else [f"{paths.ROOT}/tmkb"]
    given = configuration.read(asked["config"], asked["server"]) if asked["config"] else None
    read: list[Any] = [*asked["schemas"], paths.SCHEMAS]
    read += [] if given is None else [file for file in (asked["config"], given.services) if file]
    stamps = cache.stamps([*read, *code])
    spec = load.load(asked["server"], asked["schemas"], sources.names(), given)
    notes: list[Any] = [["left_out", {"problem": problems.line(p)}] for p in (given.left_out if given else ())]
    facts: JsonObject = {}
    warnings: list[list[Any]] = []
    sections: dict[str, JsonObject] = {}
    for name, settings in spec["server"].setdefault("providers", {}).items():
        # The folders of patterns that a user names are a setting of whoever reads such folders.
        if asked["patterns"] and registry.takes_folders(name):
            settings["folders"] = asked["patterns"]
        named = registry.sources(name, settings)
        read += named
        stamps += cache.stamps(named)
        prepared = registry.prepare(name, settings)
        facts |= prepared["facts"]
        warnings += prepared["warnings"]
        notes += prepared.get("notes", [])
        sections |= {f"{name}/{part}": made for part, made in prepared["parts"].items()}
    _list_entries(spec, sections)
    revisions: Any = spec["revisions"]
    sections |= {f"revisions/{name}": revision for name, revision in revisions.items()}
    head: Any = {
        "spec": {**spec, "revisions": {}},
        "facts": facts,
        "warnings": warnings,
        "notes": notes,
        "sources": read,
    }
    entry = cache.entry(head, sections)
    if caching:
        # Warnings and notes name files as seen from the current folder; without any, an entry serves from all folders.
        here = (paths.current() or "") if warnings or notes else None
        cache.write({**request, "from": here}, stamps, entry)
    return entry


def _list_entries(spec: Spec, sections: Mapping[str, JsonObject]) -> None:
    """Put into templates of resources the entries that an operation gives for them."""
    for resource in spec["resources"].values():
        if "entries" in resource:
            name, _, operation = str(resource["entries"]).partition(".")
            settings = spec["server"].get("providers", {}).get(name, {})
            provider = registry.open_provider(name, settings, _parts(name, sections))
            entries: Any = provider.operation(operation, resource)()
            resource["entries"] = entries


def _parts(name: str, sections: Mapping[str, JsonObject]) -> Callable[[str], JsonObject]:
    return lambda part: sections[f"{name}/{part}"]
