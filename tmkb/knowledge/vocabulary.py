"""Read the names that patterns share: CWE and OWASP ids with titles, and categories with subcategories."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tmkb.errors import DocumentError, Problem
from tmkb.schema import metaschema, paths, reader

FILE = "_vocabulary.yaml"
SCHEMA = os.path.join(paths.SCHEMAS, "meta", "vocabulary.yaml")


@dataclass(slots=True)
class Vocabulary:
    """Titles of `cwe` and `owasp` by id, subcategories by category, and the `problems` of the files."""

    cwe: dict[str, str] = field(default_factory=dict)
    owasp: dict[str, str] = field(default_factory=dict)
    categories: dict[str, list[str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @property
    def titles(self) -> dict[str, str]:
        """The titles of CWE and OWASP ids."""
        return self.cwe | self.owasp


def read(folders: Iterable[str]) -> Vocabulary:
    """Read the packaged vocabulary and those in ``folders``. Files with problems are left out."""
    vocabulary = Vocabulary()
    for folder in dict.fromkeys([paths.PATTERNS, *folders]):
        file = os.path.join(folder, FILE)
        if not os.path.isfile(file):
            continue
        try:
            doc = reader.read(file, paths.shown(file))
            problems = metaschema.check(doc, SCHEMA)
        except DocumentError as error:
            problems = error.problems
        vocabulary.problems += problems
        value: Any = {} if problems else doc.value
        vocabulary.cwe |= value.get("cwe", {})
        vocabulary.owasp |= value.get("owasp", {})
        for category, parts in value.get("categories", {}).items():
            vocabulary.categories.setdefault(category, []).extend(parts)
    return vocabulary
