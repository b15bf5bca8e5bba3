"""Find out why a client does not get answers: checks of this installation, of servers, and of the files of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tmkb.clients.client import Client
    from tmkb.clients.machine import Machine
    from tmkb.doctor.finding import Finding


class Checker:
    """Checks clients one after the other. A command that several of them have is started once."""

    def __init__(self, machine: Machine, timeout: float = 10.0) -> None:
        """Create a checker. ``timeout``: seconds for one answer of a server."""
        from tmkb.doctor import plan

        self._plan = plan.Plan(machine, is_named=True, timeout=timeout)

    def check(self, client: Client) -> list[Finding]:
        """Check the files of a client, start the servers of its entries for TMKB, and return what was found."""
        from tmkb.doctor import examination, finding

        checks = self._plan.of_client(client)
        return finding.without_repetition(each for one in examination.examine(checks) for each in one.findings)
