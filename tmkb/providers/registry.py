"""Provider name → module, imported when first used. One line each: a YAML file must not be able to import code.

A provider module has ``OPERATIONS`` (operation name → the facts that its results carry for the log), ``FACTS`` (what it
tells about itself for the server's line ``starting``) and ``open(settings)``, which gives a `Provider`.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    from tmkb.operation import Operation

    class Provider(Protocol):
        """An opened provider."""

        @property
        def facts(self) -> Mapping[str, object]:
            """What it tells about itself for the server's line ``starting``."""

        @property
        def warnings(self) -> Sequence[tuple[str, Mapping[str, object]]]:
            """(log line id, fields) for the log of the start."""

        def operation(self, name: str, tool: Mapping[str, Any]) -> Operation:
            """The operation ``name`` as ``tool`` uses it."""


MODULES = {
    "knowledge": "tmkb.providers.knowledge",
    "script": "tmkb.providers.script",
}


def open_provider(name: str, settings: Mapping[str, Any]) -> Provider:
    """The provider ``name`` with its checked settings."""
    provider: Provider = importlib.import_module(MODULES[name]).open(settings)
    return provider


def names() -> dict[str, list[str]]:
    """What providers offer to the schemas, by kind: providers, operations, and the facts of each."""
    offered: dict[str, list[str]] = {"provider": list(MODULES), "operation": []}
    for name, path in MODULES.items():
        module = importlib.import_module(path)
        offered[f"facts of {name}"] = list(module.FACTS)
        for operation, facts in module.OPERATIONS.items():
            offered["operation"].append(f"{name}.{operation}")
            offered[f"facts of {name}.{operation}"] = list(facts)
    return offered
