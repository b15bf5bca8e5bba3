"""What the checks found, as values for programs."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from typing import NamedTuple

from tmkb import __version__
from tmkb.doctor import own_server
from tmkb.doctor.examination import Examined
from tmkb.doctor.finding import ERROR, LEVELS, Finding, catalogue, without_repetition, worst
from tmkb.schema.values import JsonObject


class Section(NamedTuple):
    """What was found about one subject. ``title``: for people."""

    subject: str
    title: str
    findings: list[Finding]

    @property
    def level(self) -> str:
        """The highest level of the findings."""
        return worst(self.findings)


def sections(examined: Sequence[Examined], titles: dict[str, str]) -> list[Section]:
    """Return the findings by subject, in the order of the checks. ``titles``: subject → title."""
    ids = {finding.id for each in examined for finding in each.findings}
    by_subject: dict[str, list[Finding]] = {}
    for each in examined:
        causes = [finding for finding in each.findings if not ids & _hiding(finding)]
        by_subject.setdefault(each.check.subject, []).extend(causes)
    return [Section(name, titles.get(name, name), without_repetition(each)) for name, each in by_subject.items()]


def heading() -> str:
    """Return the line with the versions that a bug report needs."""
    return f"tmkb {__version__}, Python {platform.python_version()}, {platform.platform(terse=True)}"


def count(found: Sequence[Section]) -> dict[str, int]:
    """Return the number of findings of each level."""
    levels = [finding.level for section in found for finding in section.findings]
    return {level: levels.count(level) for level in LEVELS}


def is_wrong(found: Sequence[Section]) -> bool:
    """Return whether there is an error; warnings are none."""
    return any(section.level == ERROR for section in found)


def values(found: Sequence[Section], checks: Sequence[Examined]) -> JsonObject:
    """Return everything as JSON."""
    return {
        "tmkb": __version__,
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
        "executable": sys.executable,
        "level": worst(finding for section in found for finding in section.findings),
        "checks": [{"subject": each.check.subject, "check": each.check.name} for each in checks],
        "findings": [_value(finding) for section in found for finding in section.findings],
    }


def _hiding(finding: Finding) -> set[str]:
    """Return the ids of the findings that explain another one, which is not reported beside them."""
    id_ = "spec-unavailable" if finding.subject == own_server.TOPIC.subject else finding.id  # a part of what is damaged
    listed = catalogue()[id_].get("hidden_by", [])
    assert isinstance(listed, list)
    return {str(each) for each in listed}


def _value(finding: Finding) -> JsonObject:
    return {
        "id": finding.id,
        "subject": finding.subject,
        "level": finding.level,
        "cause": finding.cause,
        "remedy": finding.remedy or None,
        "file": finding.place.file or None,
        "line": finding.place.line or None,
        "column": finding.place.column or None,
        "details": [*finding.details],
    }
