"""Read the public lists, such as the OWASP Top 10, to whose entries patterns refer."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tmkb.knowledge.pattern import Pattern
from tmkb.schema import metaschema, paths

FILE = "_mappings.yaml"  # beside the packaged patterns
SCHEMA = os.path.join(paths.SCHEMAS, "meta", "mappings.yaml")
_KEYS = ("cwe", "owasp", "asvs")  # of `references`, with entries of lists


@dataclass(frozen=True, slots=True)
class PublicList:
    """One list, with the keys of `_mappings.yaml`."""

    name: str
    short: str
    publisher: str
    about: str
    form: str
    source: str
    cwe: Mapping[str, list[str]] = field(default_factory=dict)

    def entries(self, pattern: Pattern) -> dict[str, list[str]]:
        """Return the entries to which ``pattern`` belongs, each with the weaknesses because of which it does.

        There are none for an entry that the pattern names itself. Entries are in the order of their numbers.
        """
        references = pattern["references"]
        named = [entry for key in _KEYS for entry in references.get(key, []) if re.search(self.form, entry)]
        found: dict[str, list[str]] = {entry: [] for entry in named}
        for entry, weaknesses in self.cwe.items():
            shared = [each for each in references["cwe"] if each in weaknesses]
            if shared and entry not in named:
                found[entry] = shared
        return {entry: found[entry] for entry in sorted(found, key=order)}


def order(entry: str) -> list[int]:
    """Return the key that sorts entries by their numbers."""
    return [int(number) for number in re.findall(r"[0-9]+", entry)]


@cache
def packaged() -> dict[str, PublicList]:
    """Return the packaged lists, by the names of their pages.

    Raises:
        SpecError: the file is unreadable or invalid.
    """
    doc = metaschema.read(os.path.join(paths.PATTERNS, FILE), SCHEMA)
    lists: dict[str, Any] = doc.section("lists")
    return {name: PublicList(**each) for name, each in lists.items()}
