"""What is asked of a pattern beyond that it can be served: its name in the tree, its size, its neighbours."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import cast

from tmkb.errors import Problem
from tmkb.knowledge import tokens
from tmkb.knowledge.pattern import Found, Pattern, folder_name, parse
from tmkb.schema import metaschema
from tmkb.schema.reader import Document

SUMMARY_TOKENS = 99  # three summaries and a template have to fit into an answer
TEMPLATE_CHARACTERS = 350


def review(found: Found, known: Collection[str]) -> Iterator[Problem]:
    """What is wrong with a pattern that could be read; ``known`` are the ids that it may relate to."""
    doc, pattern = found.document, found.pattern
    if doc is None or pattern is None:
        return
    folder, expected = os.path.basename(os.path.abspath(found.folder)), folder_name(pattern["id"])
    if folder != expected:
        yield doc.problem("folder_name", ("id",), id=pattern["id"], expected=expected, actual=folder)
    yield from _text(doc, pattern, known)


def check_text(text: str, file: str, known: Collection[str]) -> list[Problem]:
    """Everything that is wrong with the text of a pattern, which problems call ``file``, as far as it tells alone."""
    doc, problems = parse(text, file)
    return problems or list(_text(doc, cast(Pattern, doc.value), known))


def _text(doc: Document, pattern: Pattern, known: Collection[str]) -> Iterator[Problem]:
    size = tokens.count(" ".join(pattern["agent_summary"].values()))
    if size > SUMMARY_TOKENS:
        yield doc.key_problem(
            "too_many_tokens", ("agent_summary",), place="agent_summary", count=size, limit=SUMMARY_TOKENS
        )
    size = len(pattern.get("template", ""))
    if size > TEMPLATE_CHARACTERS:
        place = f"the region template of {next(m['example'] for m in pattern['mitigations'] if 'example' in m)}"
        yield doc.key_problem("too_long", ("mitigations",), place=place, count=size, limit=TEMPLATE_CHARACTERS)
    for index, other in enumerate(pattern.get("related_patterns", [])):
        if other["id"] not in known:
            path = ("related_patterns", index, "id")
            yield doc.problem("unknown_pattern", path, name=other["id"], **metaschema.near(other["id"], known))
