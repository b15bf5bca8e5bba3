"""The base class of providers. A provider implements the operations that tools, prompts and resources name.

A complete provider for a tool with ``provider: inventory.count``::

    class Inventory(tmkb.Provider):
        operations = {"count": ()}

        def count(self, item):
            return str(STOCK.get(item, 0))

docs/examples/provider is a package with settings and a server.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, ClassVar, TypedDict

    from tmkb.providers.operation import Operation
    from tmkb.schema.values import JsonObject

    class Prepared(TypedDict, total=False):
        """The result of `Provider.prepare`. Every key is optional.

        ``parts``: JSON by name, which the open provider reads with `Provider.part`.
        ``files``: bytes by name, which are kept in files: the part of that name becomes ``{"path": …}``. It stays what
        ``parts`` says if nothing can be written.
        ``facts``: fields of the server's log line ``starting``.
        ``warnings``, ``notes``: pairs of a log line's id and its fields. A reload with a new warning is rejected.
        """

        parts: dict[str, JsonObject]
        files: dict[str, bytes]
        facts: JsonObject
        warnings: list[list[Any]]
        notes: list[list[Any]]


class Provider:
    """Implements operations by name. Subclasses are registered in the entry-point group ``tmkb.providers``.

    Thread-safety: a server calls its providers from one thread at a time, so a provider that starts no threads needs
    no locks.

    Class attributes:
        operations: operation → names of the facts in its `Result`, for the tool's log line.
        facts: names of the facts that `prepare` returns.
        settings_schema: the JSON Schema of the settings, a YAML or JSON file next to the provider's module. None for
            a provider without settings.
        takes_folders: whether ``--patterns`` sets ``folders`` in the settings.
    """

    operations: ClassVar[Mapping[str, Sequence[str]]] = {}
    facts: ClassVar[Sequence[str]] = ()
    settings_schema: ClassVar[str | None] = None
    takes_folders: ClassVar[bool] = False

    def __init__(self, settings: Mapping[str, Any], part: Callable[[str], JsonObject]) -> None:
        """Open the provider. Slow work belongs in `prepare`.

        Args:
            settings: the checked settings from the server's YAML.
            part: reads a part that `prepare` returned, in this process or an earlier one.
        """
        self.settings = settings
        self.part = part

    @classmethod
    def sources(cls, settings: Mapping[str, Any]) -> list[str]:
        """Return the files and folders that `prepare` reads. It runs again when one of them changes."""
        return []

    @classmethod
    def prepare(cls, settings: Mapping[str, Any]) -> Prepared:
        """Read the sources. The result is cached, so this may be slow."""
        return {}

    def operation(self, name: str, definition: Mapping[str, Any]) -> Operation:
        """Return the operation ``name``, by default the method of that name.

        An operation takes the checked arguments as keywords. It returns a `Result` or a JSON value, or is a generator
        (`tmkb.providers.operation`). It raises `ToolError` for an error that the client sees.

        Args:
            name: a key of `operations`.
            definition: the tool, prompt or resource.
        """
        operation: Operation = getattr(self, name)
        return operation
