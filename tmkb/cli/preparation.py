"""Reads, checks and prepares everything that a service needs, and keeps it for the next start."""

from __future__ import annotations

from typing import Any

from tmkb import cache, paths
from tmkb.cli import sources
from tmkb.providers import registry
from tmkb.spec import load
from tmkb.values import JsonObject


def prepare(request: JsonObject, caching: bool = True) -> cache.Entry:
    """The entry for ``request``, made from its sources. Raises SpecError, and keeps nothing then."""
    asked: Any = request
    # What stands in a checkout is edited without a new version; then our own code is a source too.
    code = [] if paths.ROOT == paths.DATA else [f"{paths.ROOT}/tmkb"]
    stamps = cache.stamps([*asked["schemas"], paths.SCHEMAS, *code])
    spec = load.load(asked["server"], asked["schemas"], sources.names())
    facts: JsonObject = {}
    warnings: list[list[Any]] = []
    sections: dict[str, JsonObject] = {}
    for name, settings in spec["server"].setdefault("providers", {}).items():
        # The folders of patterns that a user names are a setting of whoever reads such folders.
        if asked["patterns"] and registry.takes_folders(name):
            settings["folders"] = asked["patterns"]
        stamps += cache.stamps(registry.sources(name, settings))
        prepared = registry.prepare(name, settings)
        facts |= prepared["facts"]
        warnings += prepared["warnings"]
        sections |= {f"{name}/{part}": made for part, made in prepared["parts"].items()}
    head: Any = {"spec": spec, "facts": facts, "warnings": warnings}
    entry = cache.entry(head, sections)
    if caching:
        cache.write(request, stamps, entry)
    return entry
