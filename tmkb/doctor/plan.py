"""The checks of one run, in their order. Later ones depend on what earlier ones have read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tmkb.clients.client import Client
from tmkb.clients.machine import Machine
from tmkb.doctor import client_entry, client_files, client_logs, client_settings, inventory, ourselves, own_server
from tmkb.doctor.client_entry import Started
from tmkb.doctor.examination import Check
from tmkb.doctor.finding import Finding, Topic
from tmkb.doctor.inventory import Inventory
from tmkb.doctor.web import web
from tmkb.errors import SpecError
from tmkb.schema.model import Spec
from tmkb.server.server import protocol

HTTP = "http"
_STARTS = 10  # times the timeout of one answer: for all servers that a check starts


@dataclass
class Plan:
    """What to check.

    Attributes:
        machine: where the files are.
        clients: whose files are checked.
        is_named: whether the user has named these clients, who then expects entries.
        timeout: seconds for one answer of a server.
        url: of a server over HTTP; empty for none.
        headers: of each request to it.
        inventories: the content of the files, as far as they have been read.
    """

    machine: Machine
    clients: Sequence[Client] = ()
    is_named: bool = False
    timeout: float = 10.0
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    inventories: list[Inventory] = field(default_factory=list)
    _spec: Spec | None = None
    _started: Started | None = None

    def checks(self) -> Iterator[Check]:
        """Yield all checks. Each must have been run before the next one is taken."""
        for each in ourselves.CHECKS:
            yield Check(each.__name__, ourselves.TOPIC.subject, each)
        yield Check("protocol", own_server.TOPIC.subject, self._load)
        if self._spec is not None:
            start = partial(own_server.server, self.machine.environment, self.machine.folder, self._spec, self.timeout)
            yield self._starting("server", own_server.TOPIC.subject, start)
        for client in self.clients:
            yield from self.of_client(client)
        if self.url and self._spec is not None:
            ask = partial(web, self.url, self.headers, self._spec, self.timeout, Topic(HTTP))
            yield self._starting("endpoint", HTTP, ask)

    def of_client(self, client: Client) -> Iterator[Check]:
        """Yield the checks of a client."""
        if self._spec is None:
            self._spec = _spec()
        if self._started is None and self._spec is not None:
            self._started = Started(self._spec, self.timeout)
        before = len(self.inventories)
        yield Check("files", client.name, partial(self._files, client))
        for found in self.inventories[before:]:
            yield from self._of_inventory(found, self._started, inventory.in_project(client, self.machine))

    def _of_inventory(self, found: Inventory, started: Started | None, machine: Machine) -> Iterator[Check]:
        name = found.client.name
        if found.entries:
            yield Check("approval", name, lambda: client_settings.approval(found, machine))
        for entry in found.entries:
            yield Check(f"words of {entry.name}", name, partial(client_entry.words, entry, machine))
            if started is not None:
                yield self._starting(
                    f"start of {entry.name}", name, partial(client_entry.starts, entry, machine, started)
                )
        if found.entries:
            yield Check("logs", name, lambda: client_logs.logs(found, machine))

    def _files(self, client: Client) -> Iterable[Finding]:
        machine = inventory.in_project(client, self.machine)
        found = inventory.read(client, machine)
        self.inventories.append(found)
        return client_files.files(found, machine, self.is_named)

    def _load(self) -> Iterator[Finding]:
        self._spec = _spec()
        if self._spec is None:
            yield own_server.TOPIC.found("spec-unavailable")

    def _starting(self, name: str, subject: str, run: partial[Iterator[Finding]]) -> Check:
        return Check(name, subject, run, _STARTS * self.timeout + 60)


def _spec() -> Spec | None:
    """Return the revisions that clients speak; None if the schemas cannot be loaded."""
    try:
        return protocol([])
    except (SpecError, OSError):
        return None
