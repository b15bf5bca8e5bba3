"""What a transport needs of a server. A runtime has it, and so does a mock of a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from tmkb.protocol.caller import ANONYMOUS

if TYPE_CHECKING:
    from tmkb.insight.observer import Observer
    from tmkb.protocol.budget import Budget
    from tmkb.protocol.caller import Caller
    from tmkb.protocol.effects import Sent
    from tmkb.schema.model import Spec
    from tmkb.schema.values import JsonValue
    from tmkb.server.log import Log
    from tmkb.transport.probes import Condition


class Engine(Protocol):
    """Messages in, effects out, for any number of connections. `Runtime` explains each method."""

    log: Log
    conditions: dict[str, Condition]  # by name, what `/readyz` shows
    observer: Observer | None

    @property
    def spec(self) -> Spec:
        """The rules of each revision, and the limits."""

    def connect(self, headers: Mapping[str, str] | None = None, caller: Caller = ANONYMOUS) -> Any:
        """Return a connection for a new peer."""

    def budget(self, principal: str) -> Budget:
        """Return the memory budget of ``principal``."""

    def warm_up(self) -> None:
        """Prepare what the first request needs."""

    def handle(self, connection: Any, line: bytes) -> list[Sent]:
        """Handle one line without its newline."""

    def handle_value(self, connection: Any, value: JsonValue) -> list[Sent]:
        """Handle a decoded message or batch."""

    def handle_too_large(self, connection: Any) -> list[Sent]:
        """Handle a line that exceeds the size limit."""

    def due(self) -> float | None:
        """Return the seconds until `work` has something to do; None if nothing is running."""

    def work(self) -> list[Sent]:
        """Do what is due."""

    def end(self, connection: Any) -> list[Sent]:
        """End a connection whose peer has closed its input."""

    def abandon(self, connection: Any) -> None:
        """Remove a connection whose peer has disconnected."""

    def stop(self) -> list[Sent]:
        """Stop everything that runs."""
