"""Check the server of this installation, started as clients start it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tmkb.clients.launch import command
from tmkb.doctor import launch
from tmkb.doctor.finding import Finding, Topic
from tmkb.doctor.probe import Probe
from tmkb.schema.model import Spec

TOPIC = Topic("server")


def _command() -> list[str]:
    """Return the command that `tmkb install` writes."""
    program, words = command()
    return [program, *words, "serve"]


def server(environment: Mapping[str, str], folder: str, spec: Spec, timeout: float) -> Iterator[Finding]:
    """Start our own server as a program from a dock or menu does, then as a shell does.

    Args:
        environment: of the user.
        folder: the current folder.
        spec: the revisions that clients speak.
        timeout: seconds for one answer.
    """
    yield from Probe(launch.from_desktop(_command(), environment, {}), spec, timeout, TOPIC).run(is_complete=True)
    yield from Probe(launch.from_shell(_command(), environment, {}, folder), spec, timeout, TOPIC).run(
        is_complete=False
    )
