"""The names that patterns share: ids of CWE and OWASP with their titles, categories with their narrower parts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from tmkb.errors import DocumentError, Problem
from tmkb.schema import metaschema, paths, reader

FILE = "_vocabulary.yaml"
SCHEMA = os.path.join(paths.SCHEMAS, "meta", "vocabulary.yaml")


class Vocabulary:
    """Titles of `cwe`, `owasp` and `asvs` by id, `categories` with their parts, and the `problems` of the files."""

    def __init__(self) -> None:
        self.cwe: dict[str, str] = {}
        self.owasp: dict[str, str] = {}
        self.asvs: dict[str, str] = {}
        self.categories: dict[str, list[str]] = {}
        self.problems: list[Problem] = []

    @property
    def titles(self) -> dict[str, str]:
        """The titles of all references."""
        return self.cwe | self.owasp | self.asvs

    def add(self, file: str) -> None:
        """Add what stands in ``file``, unless something is wrong with it."""
        try:
            doc = reader.read(file, paths.shown(file))
        except DocumentError as error:
            self.problems += error.problems
            return
        if problems := metaschema.check(doc, SCHEMA):
            self.problems += problems
            return
        given: Any = doc.value
        self.cwe |= given.get("cwe", {})
        self.owasp |= given.get("owasp", {})
        self.asvs |= given.get("asvs", {})
        for category, parts in given.get("categories", {}).items():
            self.categories[category] = self.categories.get(category, []) + parts


def read(folders: Iterable[str]) -> Vocabulary:
    """The packaged vocabulary, and what stands in the files of ``folders``."""
    vocabulary = Vocabulary()
    for folder in dict.fromkeys([paths.PATTERNS, *folders]):
        file = os.path.join(folder, FILE)
        if os.path.isfile(file):
            vocabulary.add(file)
    return vocabulary
