"""The base class of providers. A provider implements the operations that tools, prompts and resources name.

An example, which is all that a tool with ``provider: inventory.count`` needs::

    class Inventory(tmkb.Provider):
        operations = {"count": ()}

        def count(self, item):
            return str(STOCK.get(item, 0))

docs/examples/provider is a whole package with settings and a server.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, ClassVar, TypedDict

    from tmkb.providers.operation import Operation
    from tmkb.schema.values import JsonObject

    class Prepared(TypedDict, total=False):
        """What a provider has made of its sources. Every key is optional.

        ``parts``: JSON by name, which the opened provider reads with `Provider.part`.
        ``facts``: values for the fields of the server's log line ``starting``.
        ``warnings``, ``notes``: pairs of a log line's id and its fields. A reload with a new warning is refused.
        """

        parts: dict[str, JsonObject]
        facts: JsonObject
        warnings: list[list[Any]]
        notes: list[list[Any]]


class Provider:
    """Implements operations by name. Subclasses are registered in the entry-point group ``tmkb.providers``.

    Thread-safety: a server calls its providers from one thread at a time. A provider needs no locks of its own, unless
    it starts threads.

    Class attributes:
        operations: operation → the facts that its `Result` carries for the tool's log line.
        facts: names of the facts that `prepare` returns.
        settings_schema: a YAML or JSON file beside the provider's module, the JSON Schema of its settings. None: the
            provider has no settings.
        takes_folders: whether the folders of ``--patterns`` become the setting ``folders``.
    """

    operations: ClassVar[Mapping[str, Sequence[str]]] = {}
    facts: ClassVar[Sequence[str]] = ()
    settings_schema: ClassVar[str | None] = None
    takes_folders: ClassVar[bool] = False

    def __init__(self, settings: Mapping[str, Any], part: Callable[[str], JsonObject]) -> None:
        """Open the provider, which is quick: slow work belongs to `prepare`.

        Args:
            settings: the checked settings of the server's YAML.
            part: reads a part that `prepare` returned, in this process or in an earlier one.
        """
        self.settings = settings
        self.part = part

    @classmethod
    def sources(cls, settings: Mapping[str, Any]) -> list[str]:
        """Return the files and folders that `prepare` reads. A change of one of them makes it run again."""
        return []

    @classmethod
    def prepare(cls, settings: Mapping[str, Any]) -> Prepared:
        """Read the sources. The result is cached, so this may take its time."""
        return {}

    def operation(self, name: str, definition: Mapping[str, Any]) -> Operation:
        """Return the operation ``name`` for the tool, prompt or resource ``definition``: the method of that name.

        An operation takes the checked arguments as keywords. It returns a `Result` or a JSON value, or is a generator
        (`tmkb.providers.operation`). Raise `ToolError` for an error that the client sees.
        """
        operation: Operation = getattr(self, name)
        return operation
