"""Find providers: entry points ``module:Class`` of the group ``tmkb.providers``, and the names that schemas may use.

The name of a provider is the name of its entry point. Looking up entry points is slow (`importlib.metadata`), so the
cache contains ``module:Class`` of each provider of a server.
"""

from __future__ import annotations

import os
import sys

from tmkb.providers.base import Provider as Provider  # noqa: PLC0414 # re-exported
from tmkb.schema import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import Any

    from tmkb.schema.values import JsonObject

GROUP = "tmkb.providers"
USAGE = "usage"  # the provider that records each call, if the server uses it
OURS = "tmkb."  # prefix of the modules of TMKB's own providers
_installed: dict[str, str] = {}


def installed() -> Mapping[str, str]:
    """Return the registered providers: name → ``module:Class``. For equal names, the first on ``sys.path`` wins.

    In a checkout, TMKB's own are read from pyproject.toml, because the metadata of an editable install may be outdated.
    """
    if not _installed:
        from importlib import metadata

        ours = _from_pyproject() if paths.ROOT != paths.DATA else {}
        registered: dict[str, str] = {}
        for point in metadata.entry_points(group=GROUP):
            if not (ours and point.value.startswith(OURS)):
                registered.setdefault(point.name, point.value)
        _installed.update(sorted((registered | ours).items()))
    return _installed


def _from_pyproject() -> dict[str, str]:
    import tomllib

    with open(os.path.join(paths.ROOT, "pyproject.toml"), "rb") as file:
        points: dict[str, str] = tomllib.load(file)["project"]["entry-points"][GROUP]
    return points


def load(target: str) -> type[Provider]:
    """Import the class ``module:Class``.

    Raises:
        TypeError: if it is not a subclass of `Provider`.
        Exception: any exception of the module's import.
    """
    module, _, name = target.partition(":")
    __import__(module)
    provider = getattr(sys.modules[module], name, None)
    if not (isinstance(provider, type) and issubclass(provider, Provider)):
        raise TypeError(f"{target} is not a subclass of tmkb.Provider")
    return provider


def open_provider(target: str, settings: Mapping[str, Any], part: Callable[[str], JsonObject]) -> Provider:
    """Open the provider ``module:Class``. ``part`` reads a part of `Provider.prepare`."""
    return load(target)(settings, part)


def names() -> dict[str, list[str]]:
    """Return the names of the registered providers for schemas, by the kind in ``refersTo``.

    For a provider whose import fails, the only entry is the error.
    """
    offered: dict[str, list[str]] = {"provider": [*installed()], "operation": []}
    for name, target in installed().items():
        try:
            provider = load(target)
        except Exception as error:  # must not affect servers without this provider
            offered[f"failure of {name}"] = [f"{type(error).__name__}: {error}"]
        else:
            _add(offered, name, provider)
    return offered


def offer(names: Mapping[str, Collection[str]], name: str, target: str) -> Mapping[str, Collection[str]]:
    """Return ``names`` with those of the class ``module:Class`` as the provider ``name``. Raises as `load`."""
    offered = {kind: [*each] for kind, each in names.items()}
    _add(offered, name, load(target))
    return offered


def _add(offered: dict[str, list[str]], name: str, provider: type[Provider]) -> None:
    others = [each for each in offered["operation"] if not each.startswith(f"{name}.")]
    own = [f"{name}.{operation}" for operation in provider.operations]
    # Scripted operations first: suggestions for a new file list them first.
    offered["operation"] = sorted([*others, *own], key=lambda each: (not each.startswith("script."), each))
    offered["provider"] = [*dict.fromkeys([*offered["provider"], name])]
    offered[f"facts of {name}"] = [*provider.facts]
    for operation, facts in provider.operations.items():
        offered[f"facts of {name}.{operation}"] = [*facts]
    offered[f"settings of {name}"] = [*_settings_schema(name, provider)]


def _settings_schema(name: str, provider: type[Provider]) -> Iterable[str]:
    """Yield the file with the schema of the settings. TMKB's own are packaged for editors and documents."""
    if provider.settings_schema is not None:
        folder = os.path.dirname(os.path.abspath(str(sys.modules[provider.__module__].__file__)))
        yield os.path.join(folder, provider.settings_schema)
    elif provider.__module__.startswith(OURS):
        yield os.path.join(paths.SCHEMAS, "meta", "providers", f"{name}.yaml")
