"""Read how many attacks developers missed: the sums of a measurement, written by `tests/evidence/page.py`."""

from __future__ import annotations

import os
from functools import cache
from typing import Any, NamedTuple

from tmkb.schema import metaschema, paths

FILE = "_evidence.yaml"  # beside the packaged patterns
SCHEMA = os.path.join(paths.SCHEMAS, "meta", "evidence.yaml")


class Share(NamedTuple):
    """Results in which an attack succeeded, of all results."""

    missed: int
    of: int


class Evidence(NamedTuple):
    """The results of the attacks on a scenario, of developers without and with the knowledge base."""

    attacks: int
    without: Share
    with_: Share


@cache
def packaged() -> dict[str, Evidence]:
    """Return the results of the packaged patterns with a scenario, by id.

    Raises:
        SpecError: the file is unreadable or invalid.
    """
    doc = metaschema.read(os.path.join(paths.PATTERNS, FILE), SCHEMA)
    found: dict[str, Any] = doc.section("patterns")
    return {
        id_: Evidence(each["attacks"], Share(*each["without"]), Share(*each["with"])) for id_, each in found.items()
    }
