"""Read what an organization changes in patterns, and apply it.

A `_house.yaml` in a folder of patterns sets severities, adds rules, idioms and example questions, and hides patterns.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from tmkb.errors import DocumentError, Problem
from tmkb.knowledge import idioms, stacks, tokens
from tmkb.knowledge.pattern import Pattern, hidden_characters
from tmkb.schema import metaschema, packed, paths, reader, textfile
from tmkb.schema.reader import Document

FILE = "_house.yaml"
SCHEMA = os.path.join(paths.SCHEMAS, "meta", "house.yaml")
MAX_RULE_TOKENS = 40


class House(NamedTuple):
    """A file: its document, and the changes by the id of their pattern."""

    document: Document
    changes: Mapping[str, Mapping[str, Any]]

    def unknown(self, ids: Collection[str]) -> Iterator[Problem]:
        """Report changes to patterns that are not among ``ids``."""
        for id_ in self.changes:
            if id_ not in ids:
                path = ("patterns", id_)
                yield self.document.key_problem("unknown_pattern", path, name=id_, **metaschema.near(id_, ids))


def exists(folder: str) -> bool:
    """Return whether ``folder`` has changes to patterns."""
    return packed.exists(os.path.join(folder, FILE))


def read(folder: str) -> tuple[House | None, list[Problem]]:
    """Return the changes in ``folder``, and the problems of the file. One with problems changes nothing."""
    if not exists(folder):
        return None, []
    file = os.path.join(folder, FILE)
    try:
        text = textfile.read(file, paths.shown(file))
        doc = reader.parse(text, paths.shown(file))
    except DocumentError as error:
        return None, error.problems
    changes: Any = {} if (problems := metaschema.check(doc, SCHEMA)) else doc.section("patterns")
    problems = problems or hidden_characters(doc, text)
    problems += [problem for id_, change in changes.items() for problem in _sizes(doc, id_, change)]
    return (None, problems) if problems else (House(doc, changes), [])


def _sizes(doc: Document, id_: str, change: Mapping[str, Any]) -> Iterator[Problem]:
    """Report a rule or code that is too long for an answer, and unknown stacks."""
    path = ("patterns", id_)
    size, limit = tokens.count(change.get("rule", "")), MAX_RULE_TOKENS
    if size > limit:
        yield doc.key_problem("too_many_tokens", (*path, "rule"), place="The rule", count=size, limit=limit)
    known = stacks.packaged().stacks
    for stack, idiom in change.get("idioms", {}).items():
        if stack not in known:
            yield doc.key_problem(
                "unknown_stack", (*path, "idioms", stack), name=stack, **metaschema.near(stack, known)
            )
        yield from idioms.sizes(doc, (*path, "idioms", stack), stack, idiom["code"])


def apply(change: Mapping[str, Any], pattern: Pattern) -> None:
    """Change ``pattern``. Its key ``house`` tells what is from the house; ``instead_of`` is the severity before."""
    house = {**pattern.get("house", {}), **change}
    if "severity" in change:
        house.setdefault("instead_of", pattern["severity"])
        pattern["severity"] = change["severity"]
    own = idioms.own_stack(pattern)
    if own in change.get("idioms", {}):
        pattern["template"] = change["idioms"][own]["code"]
    pattern["house"] = house
