"""Read what the log of a client says about the server."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tmkb.clients.client import Client
from tmkb.clients.machine import Machine
from tmkb.doctor import finding
from tmkb.doctor.finding import Finding, Place, Topic
from tmkb.doctor.inventory import Inventory

_MOST_FILES = 20  # the newest that are looked through
_MOST_BYTES = 1 << 18  # of the end of a file
_KEPT = 40  # lines for a bundle
_ERROR = re.compile(r"error|failed|fatal|exception|traceback|unexpected token", re.I)
_SUCCESS = re.compile(r"connected successfully|successfully connected|Server ready for MCP|serverInfo", re.I)


class Extract(NamedTuple):
    """The lines of a log that are about our entries: number and text."""

    path: str
    changed: float
    lines: list[tuple[int, str]]


def newest(client: Client, machine: Machine, names: Sequence[str]) -> Extract | None:
    """Return the newest log of a client that names one of our entries."""
    wanted = re.compile("|".join(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![\w-])" for name in sorted({"tmkb", *names})))
    for path in client.logs(machine)[:_MOST_FILES]:
        try:
            status = os.stat(path)
            if not stat.S_ISREG(status.st_mode):
                continue
            lines = _end(path, status.st_size)
        except OSError:
            continue
        is_ours = wanted.search(os.path.join(os.path.basename(os.path.dirname(path)), os.path.basename(path)))
        ours = [each for each in lines if is_ours or wanted.search(each[1])]
        if ours:
            return Extract(path, status.st_mtime, ours)
    return None


def logs(found: Inventory, machine: Machine) -> Iterator[Finding]:
    """Yield the last error in the newest log that names us, unless the server was started since."""
    client = found.client
    extract = newest(client, machine, [entry.name for entry in found.entries])
    if extract is None:
        return
    topic = Topic(client.name, Place(extract.path))
    last = next((number for number, line in reversed([*enumerate(extract.lines)]) if _is_error(line[1])), None)
    if last is None or any(_SUCCESS.search(text) for _, text in extract.lines[last + 1 :]):
        yield topic.found("log", client=client.title)
        return
    number, text = extract.lines[last]
    topic = topic.at(extract.path, number)
    if _is_older(extract, found):
        yield topic.found("log-old", client=client.title)
        return
    line = text.strip()
    yield topic.found(finding.symptom([line], "logs")[0] or "log-error", [line], client=client.title)


def tail(extract: Extract) -> list[str]:
    """Return the last lines for a bundle."""
    return [text for _, text in extract.lines[-_KEPT:]]


def _is_error(text: str) -> bool:
    return bool(_ERROR.search(text) or finding.symptom([text], "logs")[0])


def _is_older(extract: Extract, found: Inventory) -> bool:
    """Return whether a file with an entry was changed after the log."""
    files = {entry.place.file for entry in found.entries}
    return any(os.path.exists(file) and os.stat(file).st_mtime > extract.changed for file in files)


def _end(path: str, size: int) -> list[tuple[int, str]]:
    """Return the last lines of a file with their numbers."""
    with open(path, "rb") as file:
        skipped = max(0, size - _MOST_BYTES)
        first = 1
        for _ in range(skipped // _MOST_BYTES):
            first += file.read(_MOST_BYTES).count(b"\n")
        first += file.read(skipped % _MOST_BYTES).count(b"\n")
        lines = file.read(_MOST_BYTES).decode("utf-8", "replace").splitlines()
    return [*enumerate(lines, first)]
