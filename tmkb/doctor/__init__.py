"""Find out why a client does not get answers: checks of this installation, of servers, and of the files of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tmkb.clients.client import Client
    from tmkb.clients.machine import Machine
    from tmkb.doctor.finding import Finding


def check_client(client: Client, machine: Machine, timeout: float = 10.0) -> list[Finding]:
    """Check the files of a client, start the servers of its entries for TMKB, and return what was found.

    ``timeout``: seconds for one answer of a server.
    """
    from tmkb.doctor import examination, finding, plan

    checks = plan.Plan(machine, [client], is_named=True, timeout=timeout).of_clients()
    return finding.without_repetition(each for one in examination.examine(checks) for each in one.findings)
