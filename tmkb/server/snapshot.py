"""What is served from one change to the next: a spec, and all that has been made of it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tmkb.protocol.connection import Kept, Once
    from tmkb.providers.operation import Operation
    from tmkb.providers.registry import Provider
    from tmkb.schema.model import Definition, Spec


class Edition:
    """A spec with its opened providers, kept answers and encoded lists, none of which outlives it."""

    __slots__ = ("kept", "once", "opened", "operations", "provider", "spec")

    def __init__(self, spec: Spec, provider: Callable[[str], Provider]) -> None:
        """``provider`` opens the provider of a name."""
        self.spec = spec
        self.provider = provider
        self.opened: dict[str, Provider] = {}
        self.operations: dict[tuple[str, str], Operation] = {}
        self.kept: Kept = {}
        self.once: Once = {}

    def operation(self, definition: Definition) -> Operation:
        """The operation of ``definition``, from a provider that is opened when it is first needed."""
        called = definition["kind"], definition["name"]
        operation = self.operations.get(called)
        if operation is None:
            provider, _, name = definition["provider"].partition(".")
            operation = self.open(provider).operation(name, definition)
            self.operations[called] = operation
        return operation

    def open(self, provider: str) -> Provider:
        """The opened provider of that name."""
        if provider not in self.opened:
            self.opened[provider] = self.provider(provider)
        return self.opened[provider]
