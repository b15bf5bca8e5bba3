"""What settings name and this machine has not: told at the start, and looked for again when it comes."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def files(named: Mapping[str, str]) -> list[str]:
    """Those of ``named`` (setting → path) that are not there; they are sources, so that their coming is noticed."""
    return [path for path in named.values() if not os.path.exists(path)]


def notes(named: Mapping[str, str]) -> list[list[Any]]:
    """A line of the log for each of them."""
    return [
        ["absent", {"setting": setting, "path": path}] for setting, path in named.items() if not os.path.exists(path)
    ]
