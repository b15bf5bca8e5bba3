"""Build the cache entry of a server: read and check its files, and prepare its providers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tmkb import __version__
from tmkb.errors import DocumentError, SpecError
from tmkb.knowledge.library import PACKAGED
from tmkb.providers import registry
from tmkb.schema import classes, configuration, load, paths, problems
from tmkb.schema.model import Spec
from tmkb.schema.values import JsonObject
from tmkb.server import cache, repository, sources

if TYPE_CHECKING:
    from tmkb.providers.base import Provider


_META = "tmkb/patterns"  # key of `_meta` in results: the versions of the patterns


def build(request: JsonObject, caching: bool = True) -> cache.Entry:
    """Build the entry for ``request``, and write it to the cache if ``caching``.

    Raises:
        SpecError: with every problem of the files. The cache is not written then.
    """
    try:
        return _build(request, caching)
    except DocumentError as error:
        raise SpecError(error.problems) from error


def _build(request: Any, caching: bool) -> cache.Entry:
    config = configuration.read(request["config"], request["server"]) if request["config"] else None
    read: list[Any] = [*request["schemas"], paths.SCHEMAS]
    read += [] if config is None else [file for file in (request["config"], config.services) if file]
    stamps = cache.stamps([*read, *_code()])
    offer = registry.offer if request["allow_python"] else None
    spec = load.load(request["server"], request["schemas"], sources.names(), config, offer)
    targets = _targets(spec)
    notes: list[Any] = [["left_out", {"problem": problems.line(p)}] for p in (config.left_out if config else ())]
    prepared = _Prepared(notes)
    for name, settings in spec["server"].get("providers", {}).items():
        provider = registry.load(targets[name])
        if request["patterns"] and provider.takes_folders:
            settings["folders"] = request["patterns"]
        provider_sources = provider.sources(settings)
        read += provider_sources
        stamps += cache.stamps(provider_sources)
        prepared.add(name, _prepare(request, provider, settings, provider_sources, caching))
    stamps += cache.stamps(prepared.kept)
    _show_versions(spec, request["patterns"])
    _list_entries(spec, targets, prepared.sections)
    modules = {target.partition(":")[0] for target in targets.values() if not target.startswith(registry.OURS)}
    stamps += cache.stamps(sorted({_package(module) for module in modules}))
    revisions: Any = spec["revisions"]
    head: Any = {
        "spec": {**spec, "revisions": {}},
        "facts": prepared.facts,
        "warnings": prepared.warnings,
        "notes": prepared.notes,
        "sources": read,
        "providers": targets,
        "modules": {name: _file(name) for name in sorted({module.partition(".")[0] for module in modules})},
    }
    entry = cache.entry(head, prepared.sections | {f"revisions/{name}": revisions[name] for name in revisions})
    if caching:
        # Warnings and notes name files relative to the current folder. An entry without any is valid in every folder.
        folder = (paths.current() or "") if prepared.warnings or prepared.notes else None
        cache.write({**request, "from": folder}, stamps, entry)
    return entry


def _code() -> list[str]:
    """Return TMKB's own code: in a checkout it changes without a new version, so it is a source too."""
    return [] if paths.ROOT == paths.DATA else [f"{paths.ROOT}/tmkb", f"{paths.ROOT}/pyproject.toml"]


def _prepare(
    request: Mapping[str, Any], provider: type[Provider], settings: Mapping[str, Any], files: list[str], caching: bool
) -> cache.Entry:
    """Return what ``provider`` prepares. If it is ours and reads ``files``, it is cached for all schemas."""
    is_cached = caching and bool(files) and provider.__module__.startswith(registry.OURS)
    own = {key: request[key] for key in ("tmkb", "python", "root")}
    # Folders in the settings can be relative to the current folder, so the files tell which are meant.
    own |= {"provider": f"{provider.__module__}:{provider.__qualname__}", "settings": dict(settings), "files": files}
    if is_cached and (entry := cache.read(own, files)):
        return entry
    stamps = cache.stamps([*files, paths.SCHEMAS, *_code()])
    prepared = provider.prepare(settings)
    parts = {**prepared.get("parts", {})}
    log = {key: prepared.get(key, []) for key in ("warnings", "notes")}
    kept = []
    for part, content in prepared.get("files", {}).items() if caching else ():
        if path := cache.keep(content):
            parts[part] = {"path": path}
            kept.append(path)
    head: Any = {**log, "facts": prepared.get("facts", {}), "kept": kept}
    entry = cache.entry(head, parts)
    if is_cached and not any(log.values()):  # they name files relative to the current folder
        cache.write(own, [*stamps, *cache.stamps(kept)], entry)
    return entry


class _Prepared:
    """The merged results of all providers."""

    def __init__(self, notes: list[Any]) -> None:
        self.facts: JsonObject = {}
        self.warnings: list[list[Any]] = []
        self.notes = notes
        self.sections: dict[str, JsonObject] = {}
        self.kept: list[str] = []  # files in the cache folder

    def add(self, name: str, entry: cache.Entry) -> None:
        head: Any = entry.head
        self.facts |= head["facts"]
        self.warnings += head["warnings"]
        self.notes += head["notes"]
        self.kept += head["kept"]
        self.sections |= {f"{name}/{part}": entry.section(part) for part in entry.sections}


def _show_versions(spec: Spec, folders: Sequence[str]) -> None:
    """Add the commits of Git sources to the version of the server and, if it has a catalog, to its results."""
    versions: Any = [facts for folder in folders if (facts := repository.facts(folder))]
    if not versions:
        return
    server: Any = spec["server"]
    server["version"] += "+" + ".".join(version["commit"][:7] for version in versions)
    if any(settings.get("catalog") for settings in server["providers"].values()):
        packaged = {"packaged": __version__} if PACKAGED in folders else {}
        server["result_meta"] = {_META: {**packaged, "sources": versions}}


def _targets(spec: Spec) -> dict[str, str]:
    """Return name → ``module:Class`` of each provider in use, and remove class names from the settings."""
    targets = {**registry.installed()}
    for name, settings in spec["server"].setdefault("providers", {}).items():
        if classes.KEY in settings:
            targets[name] = str(settings.pop(classes.KEY))
    definitions = json.dumps([spec["tools"], spec["prompts"], spec["resources"]], ensure_ascii=False)
    used = {name for name in targets if name in spec["server"]["providers"] or f'"{name}.' in definitions}
    return {name: target for name, target in targets.items() if name in used}


def _list_entries(spec: Spec, targets: Mapping[str, str], sections: Mapping[str, JsonObject]) -> None:
    """Set the list entries of resource templates."""
    for resource in spec["resources"].values():
        if "entries" in resource:
            name, _, operation = str(resource["entries"]).partition(".")
            settings = spec["server"].get("providers", {}).get(name, {})
            provider = registry.open_provider(targets[name], settings, _parts(name, sections))
            entries: Any = provider.operation(operation, resource)()
            resource["entries"] = entries


def _parts(name: str, sections: Mapping[str, JsonObject]) -> Callable[[str], JsonObject]:
    return lambda part: sections[f"{name}/{part}"]


def _file(module: str) -> str | None:
    return getattr(sys.modules[module], "__file__", None)


def _package(module: str) -> str:
    """Return the folder of the top-level package of ``module``, or the file of a top-level module."""
    file = os.path.abspath(_file(module.partition(".")[0]) or str(_file(module)))
    return os.path.dirname(file) if os.path.basename(file).startswith("__init__.") else file
