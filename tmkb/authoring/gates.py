"""What ``tmkb validate --strict`` asks of a pattern: enough proof, known names, ties both ways, words of its own.

Patterns are compared within their collection, the folder they stand in. The measure of likeness is Jaccard's: of all
that two patterns say, the share that both say. Words are compared as the search compares them. Between packaged
patterns it reaches a third for summaries and a tenth for keywords.
"""

from __future__ import annotations

import ast
import datetime
import os
import re
from collections.abc import Hashable, Iterator, Sequence

from tmkb.errors import Problem
from tmkb.knowledge import examples, provenance
from tmkb.knowledge.pattern import Found, Pattern
from tmkb.knowledge.retrieval.bm25 import stems
from tmkb.knowledge.vocabulary import Vocabulary
from tmkb.schema import metaschema, paths
from tmkb.schema.reader import Document

LEAST = {"A": {"exploit_": 3, "legitimate_": 2}, "B": {"exploit_": 1, "legitimate_": 1}}  # functions of a proof
SHARED = 3  # patterns that may have one keyword
ALIKE = 0.4  # the likeness from which on two are one

_ADDRESS = re.compile(r"https://[^\s/]+\.[^\s/.]+(/\S*)?")


def review(found: Found, collection: Sequence[Found], vocabulary: Vocabulary) -> Iterator[Problem]:
    """What keeps a pattern that can be served from the standard of the packaged ones."""
    doc, pattern = found.document, found.pattern
    if doc is None or pattern is None:
        return
    others = [each.pattern for each in collection if each.pattern is not None and each.pattern["id"] != pattern["id"]]
    if os.path.dirname(os.path.abspath(found.folder)) == paths.PATTERNS:
        yield from _packaged(found, doc, pattern)
    yield from _reviewed(doc, pattern)
    yield from _category(doc, pattern, vocabulary)
    yield from _own_words(doc, pattern, others)
    yield from _proof(found, pattern)
    yield from _ties(doc, pattern, others)
    yield from _references(doc, pattern, vocabulary)


def _packaged(found: Found, doc: Document, pattern: Pattern) -> Iterator[Problem]:
    if "code" not in pattern:
        yield doc.problem("unshown", ("id",))
    elif provenance.status(found.folder, pattern) != "proven":
        yield doc.problem("not_proven", ("id",), id=pattern["id"])


def _reviewed(doc: Document, pattern: Pattern) -> Iterator[Problem]:
    text = pattern["reviewed"]
    latest = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=14)  # the clock that is most ahead
    try:
        day = datetime.date.fromisoformat(text)
    except ValueError:
        yield doc.problem("no_day", ("reviewed",), text=text)
        return
    if day > latest.date():
        yield doc.problem("in_future", ("reviewed",), text=text)


def _category(doc: Document, pattern: Pattern, vocabulary: Vocabulary) -> Iterator[Problem]:
    category, part = pattern["category"], pattern.get("subcategory")
    if category not in vocabulary.categories:
        near = metaschema.near(category, vocabulary.categories)
        yield doc.problem("not_in_vocabulary", ("category",), kind="category", name=category, **near)
    elif part is not None and part not in (parts := vocabulary.categories[category]):
        kind = f"part of {category}"
        yield doc.problem("not_in_vocabulary", ("subcategory",), kind=kind, name=part, **metaschema.near(part, parts))


def _own_words(doc: Document, pattern: Pattern, others: Sequence[Pattern]) -> Iterator[Problem]:
    """Keywords that many have, and patterns that say nearly the same."""
    for index, keyword in enumerate(pattern["triggers"]["keywords"]):
        same = [other["id"] for other in others if _words(keyword) in _keywords(other)]
        if len(same) >= SHARED:
            path = ("triggers", "keywords", index)
            yield doc.problem("keyword_of_many", path, name=keyword, others=", ".join(same), limit=SHARED)
    for place, said in (("triggers.keywords", _keywords), ("agent_summary", _summary)):
        for other in others:
            likeness = _likeness(said(pattern), said(other))
            if likeness >= ALIKE:
                fields = {"place": place, "other": other["id"], "percent": round(100 * likeness)}
                yield doc.key_problem("alike", tuple(place.split(".")), limit=round(100 * ALIKE), **fields)


def _words(text: str) -> frozenset[str]:
    return frozenset(stems(text))


def _keywords(pattern: Pattern) -> set[Hashable]:
    return {_words(keyword) for keyword in pattern["triggers"]["keywords"]}


def _summary(pattern: Pattern) -> set[Hashable]:
    return {*stems(" ".join(pattern["agent_summary"].values()))}


def _likeness(one: set[Hashable], other: set[Hashable]) -> float:
    return len(one & other) / (len(one | other) or 1)


def _proof(found: Found, pattern: Pattern) -> Iterator[Problem]:
    """Whether the proof shows as much as the tier promises; the place is that of the last function there is."""
    if "code" not in pattern:
        return
    name = pattern["code"].get("proof", "proof.py")
    shown = paths.shown(os.path.join(found.folder, name))
    source = examples.source(found.folder, name, shown)
    tree = examples.parsed(source, []) if source else ast.Module([], [])
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for prefix, least in LEAST[pattern["tier"]].items():
        lines = [function.lineno for function in functions if function.name.startswith(prefix)]
        if len(lines) < least:
            fields = {"count": len(lines), "prefix": prefix, "tier": pattern["tier"], "least": least}
            yield Problem("too_few", shown, lines[-1] if lines else 1, **fields)


def _ties(doc: Document, pattern: Pattern, others: Sequence[Pattern]) -> Iterator[Problem]:
    """Related patterns of the same collection that do not name this one; or do, although that is denied."""
    names = {other["id"]: {each["id"] for each in other.get("related_patterns", [])} for other in others}
    for index, other in enumerate(pattern.get("related_patterns", [])):
        if other["id"] not in names:
            continue
        path, named = ("related_patterns", index), pattern["id"] in names[other["id"]]
        if "one_way" in other and named:
            yield doc.key_problem("not_one_way", (*path, "one_way"), name=other["id"], id=pattern["id"])
        elif "one_way" not in other and not named:
            yield doc.problem("not_named_back", (*path, "id"), name=other["id"], id=pattern["id"])


def _references(doc: Document, pattern: Pattern, vocabulary: Vocabulary) -> Iterator[Problem]:
    references = pattern["references"]
    for key, titles in (("cwe", vocabulary.cwe), ("owasp", vocabulary.owasp), ("asvs", vocabulary.asvs)):
        for index, name in enumerate(references.get(key, [])):
            if name not in titles:
                near = metaschema.nearest(name, titles)
                fields = {"name": name, "nearest": near, "title": titles.get(near, "")}
                yield doc.problem("no_title", ("references", key, index), **fields)
    for index, address in enumerate(references.get("sources", [])):
        if not _ADDRESS.fullmatch(address):
            yield doc.problem("not_https", ("references", "sources", index), text=address)
