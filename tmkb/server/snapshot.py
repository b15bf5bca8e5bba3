"""Snapshots: everything that is served between two reloads, with the open providers."""

from __future__ import annotations

from tmkb.protocol import messages, requests
from tmkb.protocol.connection import Connection
from tmkb.protocol.connection import Snapshot as Served
from tmkb.protocol.effects import Send
from tmkb.protocol.messages import Request
from tmkb.providers.operation import Notify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tmkb.protocol.caller import Caller
    from tmkb.providers.operation import Operation
    from tmkb.providers.registry import Provider
    from tmkb.schema.model import Definition, Spec
    from tmkb.schema.values import JsonObject


class Snapshot(Served):
    """A spec with its providers and operations, which are opened on first use."""

    def __init__(self, spec: Spec, provider: Callable[[str], Provider]) -> None:
        """``provider``: opens a provider by name."""
        super().__init__(spec)
        self.provider = provider
        self.providers: dict[str, Provider] = {}
        self.operations: dict[tuple[str, str], Operation] = {}  # by kind and name of the definition

    def operation(self, definition: Definition) -> Operation:
        """Open the operation of ``definition`` and cache it."""
        provider, _, name = definition["provider"].partition(".")
        operation = self.open(provider).operation(name, definition)
        self.operations[definition["kind"], definition["name"]] = operation
        return operation

    def served(self) -> tuple[Spec, Callable[[str], Provider]]:
        """Return the spec, and the function that opens a provider."""
        return self.spec, self.provider

    def open(self, provider: str) -> Provider:
        """Return the provider of that name, opened on first use."""
        if provider not in self.providers:
            self.providers[provider] = self.provider(provider)
        return self.providers[provider]


def can_serve(snapshot: Snapshot, connection: Connection) -> bool:
    """Return whether ``snapshot`` has the negotiated revision and the current state of ``connection``."""
    if connection.negotiated is None:
        return True
    revision = snapshot.spec["revisions"].get(connection.negotiated["revision"])
    return revision is not None and connection.state in snapshot.spec["lifecycles"][revision["lifecycle"]]["states"]


def changed_lists(connection: Connection, snapshot: Snapshot) -> list[Notify]:
    """Return a notification for each list that is different in ``snapshot``."""
    revisions = {revision["revision"] for revision, _ in connection.listening.values()}
    if connection.negotiated is not None:
        revisions.add(connection.negotiated["revision"])
    methods = {
        name: None
        for revision in sorted(revisions & {*snapshot.spec["revisions"]})
        for name in _changed(connection.spec, snapshot.spec, revision, connection.caller)
    }
    return [Notify(name) for name in methods]


def _changed(before: Spec, after: Spec, revision: str, caller: Caller) -> Iterator[str]:
    """Yield the list-changed notifications of ``revision`` whose lists are different."""
    for name, method in after["revisions"][revision]["methods"].items():
        if any(
            [*_pages(before, revision, listed, caller)] != [*_pages(after, revision, listed, caller)]
            for listed in method.get("lists", [])
        ):
            yield name


def _pages(spec: Spec, revision: str, name: str, caller: Caller) -> Iterator[Any]:
    """Yield every page of a list as ``caller`` sees it, without `_meta`."""
    rules = spec["revisions"][revision]
    peer = Connection(Served(spec), caller=caller)
    params: JsonObject = {}
    while name in rules["methods"]:
        exchange = requests.Exchange(peer, rules, Request(0, name, params), 0)
        effects = requests.handler(rules["methods"][name]["handler"]).begin(exchange)
        result: Any = next(messages.decode(each.message) for each in effects if isinstance(each, Send))
        yield {key: value for key, value in result["result"].items() if key != "_meta"}
        if "nextCursor" not in result["result"]:
            return
        params = {"cursor": result["result"]["nextCursor"]}
