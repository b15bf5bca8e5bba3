"""Run checks one after the other, each with a time limit. One that fails does not stop the others."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tmkb.doctor import probe
from tmkb.doctor.damage import damage
from tmkb.doctor.finding import Finding, Topic

LIMIT = 60.0  # seconds for a check that starts no server


class Check(NamedTuple):
    """A check. ``limit``: seconds after which it is given up."""

    name: str
    subject: str
    run: Callable[[], Iterable[Finding]]
    limit: float = LIMIT


class Examined(NamedTuple):
    """A check that was run, with what it found."""

    check: Check
    findings: tuple[Finding, ...]


def examine(checks: Iterable[Check], show: Callable[[str], None] = lambda _: None) -> Iterator[Examined]:
    """Run ``checks`` and yield their findings. A check leaves no process behind.

    ``show``: called with a line before each check.
    """
    for check in checks:
        show(f"{check.subject}: {check.name}")
        yield Examined(check, tuple(_findings(check)))


def _findings(check: Check) -> list[Finding]:
    """Run a check in a thread of its own, which is given up after the limit."""
    results: queue.SimpleQueue[Finding | None] = queue.SimpleQueue()
    thread = threading.Thread(target=_work, args=(check, results), daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        return [Topic(check.subject).found("limit-reached", reason=error)]
    findings: list[Finding] = []
    deadline = time.monotonic() + check.limit
    try:
        while (finding := results.get(timeout=max(0.0, deadline - time.monotonic()))) is not None:
            findings.append(finding)
    except queue.Empty:
        findings.append(Topic(check.subject).found("check-slow", check=check.name, seconds=f"{check.limit:g}"))
    finally:
        probe.abandon(thread)
    return findings


def _work(check: Check, results: queue.SimpleQueue[Finding | None]) -> None:
    try:
        for finding in check.run():
            results.put(finding)
    except Exception as error:  # whatever a file or a system does: the other checks must go on
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if found := damage(error):
            results.put(Topic("tmkb").found(found.id, [reason], **found.fields))
        elif probe.is_limit(error):
            results.put(Topic(check.subject).found("limit-reached", reason=reason))
        else:
            results.put(Topic(check.subject).found("check-failed", check=check.name, reason=reason))
    finally:
        results.put(None)
