"""Provider name → module, imported when first used. One line each: a YAML file must not be able to import code.

A provider module has ``OPERATIONS`` (operation name → the facts that its results carry for the log), ``FACTS`` (what it
tells about itself for the server's line ``starting``), ``FOLDERS`` (whether the folders that a user names are its
setting), and ``open(settings, part)``, which is quick. It may have ``sources(settings)``, the files it reads, and
``prepare(settings)``, which reads them and may take its time, because its result is cached.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType
    from typing import Any, NotRequired, Protocol, TypedDict

    from tmkb.providers.operation import Operation
    from tmkb.schema.values import JsonObject

    class Provider(Protocol):
        """An opened provider."""

        def operation(self, name: str, definition: Mapping[str, Any]) -> Operation:
            """The operation ``name`` as the tool, prompt or resource ``definition`` uses it."""

    class Prepared(TypedDict):
        """What a provider has made of its sources; ``warnings`` and ``notes`` are [log line id, fields].

        Sources of which there are more warnings than before do not replace those that are served. ``parts`` are JSON by
        name, each of which is read again only when the opened provider asks for it.
        """

        facts: JsonObject
        warnings: list[list[Any]]
        notes: NotRequired[list[list[Any]]]
        parts: dict[str, JsonObject]


MODULES = {
    "knowledge": "tmkb.knowledge.provider",
    "script": "tmkb.providers.script",
    "usage": "tmkb.providers.usage",
    "eventlog": "tmkb.sysmcp.eventlog.provider",
    "files": "tmkb.sysmcp.files.provider",
    "hives": "tmkb.sysmcp.registry.provider",
}
USAGE = "usage"  # the provider that is told of each call, if the server names it


def sources(name: str, settings: Mapping[str, Any]) -> list[str]:
    """The files and folders that the provider ``name`` reads."""
    module = _module(name)
    found: list[str] = module.sources(settings) if hasattr(module, "sources") else []
    return found


def takes_folders(name: str) -> bool:
    """Whether the folders that a user names are the setting ``folders`` of the provider ``name``."""
    return bool(_module(name).FOLDERS)


def prepare(name: str, settings: Mapping[str, Any]) -> Prepared:
    """What the provider ``name`` makes of its sources, with its checked settings."""
    module = _module(name)
    nothing: Prepared = {"facts": {}, "warnings": [], "parts": {}}
    prepared: Prepared = module.prepare(settings) if hasattr(module, "prepare") else nothing
    return prepared


def open_provider(name: str, settings: Mapping[str, Any], part: Callable[[str], JsonObject]) -> Provider:
    """The provider ``name``, with a way to the parts that it prepared, now or in an earlier process."""
    provider: Provider = _module(name).open(settings, part)
    return provider


def names() -> dict[str, list[str]]:
    """What providers offer to the schemas, by kind: providers, operations, and the facts of each."""
    offered: dict[str, list[str]] = {"provider": list(MODULES), "operation": []}
    for name in MODULES:
        module = _module(name)
        offered[f"facts of {name}"] = list(module.FACTS)
        for operation, facts in module.OPERATIONS.items():
            offered["operation"].append(f"{name}.{operation}")
            offered[f"facts of {name}.{operation}"] = list(facts)
    # Those that need no Python come first: they are what the author of a new file is most likely to want.
    offered["operation"].sort(key=lambda each: (not each.startswith("script."), each))
    return offered


def _module(name: str) -> ModuleType:
    __import__(MODULES[name])
    return sys.modules[MODULES[name]]
