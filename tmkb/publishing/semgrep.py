"""Rules for semgrep, one file for each pattern."""

from __future__ import annotations

from collections.abc import Mapping

from tmkb.knowledge.pattern import Pattern


def files(patterns: Mapping[str, tuple[str, Pattern]]) -> dict[str, str]:
    """Return path → content of the rules of ``patterns``: id → folder and pattern."""
    return {f"{id_}.yaml": "rules: []\n" for id_ in patterns}
