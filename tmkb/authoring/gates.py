"""Quality gates of ``tmkb validate --strict``: enough exploits, known names, mutual relations, distinct words.

Patterns are compared with the others in the same parent folder. The similarity is the Jaccard index of their stems, as
search computes them. Between packaged patterns it reaches a third for summaries, and a tenth for keywords.
"""

from __future__ import annotations

import ast
import datetime
import os
import re
from collections.abc import Hashable, Iterator, Sequence

from tmkb.authoring.bm25 import stems
from tmkb.errors import Problem
from tmkb.knowledge import attacks as attacks_file
from tmkb.knowledge import examples, provenance
from tmkb.knowledge.pattern import Pattern, PatternFolder
from tmkb.knowledge.vocabulary import Vocabulary
from tmkb.schema import metaschema, paths
from tmkb.schema.reader import Document

MIN_FUNCTIONS = {"A": {"exploit_": 3, "legitimate_": 2}, "B": {"exploit_": 1, "legitimate_": 1}}
MIN_WRONG = 4  # wrong fixes of a pattern with attacks.yaml
MAX_SHARED = 3  # patterns with the same keyword
MAX_SIMILARITY = 0.4  # reported from here on

_URL = re.compile(r"https://[^\s/]+\.[^\s/.]+(/\S*)?")


def review(folder: PatternFolder, collection: Sequence[PatternFolder], vocabulary: Vocabulary) -> Iterator[Problem]:
    """Report where a pattern that can be served falls short of the packaged ones."""
    doc, pattern = folder.document, folder.pattern
    if doc is None or pattern is None:
        return
    others = [each.pattern for each in collection if each.pattern is not None and each.pattern["id"] != pattern["id"]]
    if os.path.dirname(os.path.abspath(folder.path)) == paths.PATTERNS:
        if "code" not in pattern:
            yield doc.problem("unshown", ("id",))
        elif provenance.status(folder.path, pattern) != "proven":
            yield doc.problem("not_proven", ("id",), id=pattern["id"])
    yield from _review_date(doc, pattern["reviewed"])
    yield from _category(doc, pattern, vocabulary)
    yield from _similarity(doc, pattern, others)
    yield from _proof(folder, pattern)
    yield from _relations(doc, pattern, others)
    yield from _references(doc, pattern, vocabulary)


def _review_date(doc: Document, text: str) -> Iterator[Problem]:
    latest = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=14)  # in the easternmost time zone
    try:
        if datetime.date.fromisoformat(text) > latest.date():
            yield doc.problem("in_future", ("reviewed",), text=text)
    except ValueError:
        yield doc.problem("no_day", ("reviewed",), text=text)


def _category(doc: Document, pattern: Pattern, vocabulary: Vocabulary) -> Iterator[Problem]:
    category, part = pattern["category"], pattern.get("subcategory")
    if category not in vocabulary.categories:
        near = metaschema.near(category, vocabulary.categories)
        yield doc.problem("not_in_vocabulary", ("category",), kind="category", name=category, **near)
    elif part is not None and part not in (parts := vocabulary.categories[category]):
        kind = f"part of {category}"
        yield doc.problem("not_in_vocabulary", ("subcategory",), kind=kind, name=part, **metaschema.near(part, parts))


def _similarity(doc: Document, pattern: Pattern, others: Sequence[Pattern]) -> Iterator[Problem]:
    """Report keywords that many patterns share, and patterns with similar keywords or summaries."""
    for index, keyword in enumerate(pattern["triggers"]["keywords"]):
        same = [other["id"] for other in others if frozenset(stems(keyword)) in _keywords(other)]
        if len(same) >= MAX_SHARED:
            path = ("triggers", "keywords", index)
            yield doc.problem("keyword_of_many", path, name=keyword, others=", ".join(same), limit=MAX_SHARED)
    for place, features in (("triggers.keywords", _keywords), ("agent_summary", _summary)):
        for other in others:
            one, two = features(pattern), features(other)
            similarity = len(one & two) / (len(one | two) or 1)
            if similarity >= MAX_SIMILARITY:
                fields = {"place": place, "other": other["id"], "percent": round(100 * similarity)}
                yield doc.key_problem("alike", tuple(place.split(".")), limit=round(100 * MAX_SIMILARITY), **fields)


def _keywords(pattern: Pattern) -> set[Hashable]:
    return {frozenset(stems(keyword)) for keyword in pattern["triggers"]["keywords"]}


def _summary(pattern: Pattern) -> set[Hashable]:
    return {*stems(" ".join(pattern["agent_summary"].values()))}


def _proof(folder: PatternFolder, pattern: Pattern) -> Iterator[Problem]:
    """Report a proof with fewer functions than its tier requires, at the last function of the kind."""
    if "code" not in pattern:
        return
    if "attacks" in pattern["code"]:
        yield from _attacks(folder)
        return
    name = pattern["code"].get("proof", "proof.py")
    file = paths.shown(os.path.join(folder.path, name))
    source = examples.read(folder.path, name, file)
    tree = examples.parse(source, []) if source else ast.Module([], [])
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for prefix, least in MIN_FUNCTIONS[pattern["tier"]].items():
        lines = [function.lineno for function in functions if function.name.startswith(prefix)]
        if len(lines) < least:
            fields = {"count": len(lines), "prefix": prefix, "tier": pattern["tier"], "least": least}
            yield Problem("too_few", file, lines[-1] if lines else 1, **fields)


def _attacks(folder: PatternFolder) -> Iterator[Problem]:
    """Report an attacks.yaml with fewer wrong fixes than required."""
    attacks, _ = attacks_file.read(folder.path)
    count = len(attacks.wrong) if attacks else 0
    if count < MIN_WRONG:
        file = paths.shown(os.path.join(folder.path, attacks_file.NAME))
        yield Problem("too_few_wrong", file, count=count, least=MIN_WRONG)


def _relations(doc: Document, pattern: Pattern, others: Sequence[Pattern]) -> Iterator[Problem]:
    """Report related patterns that do not name this one in return, and those marked `one_way` that do."""
    related = {other["id"]: {each["id"] for each in other.get("related_patterns", [])} for other in others}
    for index, other in enumerate(pattern.get("related_patterns", [])):
        if other["id"] not in related:
            continue
        path, is_mutual = ("related_patterns", index), pattern["id"] in related[other["id"]]
        if "one_way" in other and is_mutual:
            yield doc.key_problem("not_one_way", (*path, "one_way"), name=other["id"], id=pattern["id"])
        elif "one_way" not in other and not is_mutual:
            yield doc.problem("not_named_back", (*path, "id"), name=other["id"], id=pattern["id"])


def _references(doc: Document, pattern: Pattern, vocabulary: Vocabulary) -> Iterator[Problem]:
    references = pattern["references"]
    for key, titles in (("cwe", vocabulary.cwe), ("owasp", vocabulary.owasp), ("asvs", vocabulary.asvs)):
        for index, name in enumerate(references.get(key, [])):
            if name not in titles:
                near = metaschema.nearest(name, titles)
                fields = {"name": name, "nearest": near, "title": titles.get(near, "")}
                yield doc.problem("no_title", ("references", key, index), **fields)
    for index, url in enumerate(references.get("sources", [])):
        if not _URL.fullmatch(url):
            yield doc.problem("not_https", ("references", "sources", index), text=url)
