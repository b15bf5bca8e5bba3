"""Rules for semgrep, one file for each pattern.

`semgrep.yaml` beside a pattern has only the expressions. Message and metadata are those of the pattern.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tmkb.errors import DocumentError, Problem, SpecError
from tmkb.knowledge import vocabulary
from tmkb.knowledge.answer import unwrap
from tmkb.knowledge.pattern import Pattern, hidden_characters
from tmkb.schema import emission, metaschema, packed, paths, reader, textfile
from tmkb.schema.reader import Document
from tmkb.schema.values import JsonObject

NAME = "semgrep.yaml"
SCHEMA = os.path.join(paths.SCHEMAS, "meta", "semgrep.yaml")


class Rules(NamedTuple):
    """The content of a semgrep.yaml: rules by the end of their id, or the sentence that says why there are none."""

    rules: Mapping[str, dict[str, Any]]
    none: str | None


def files(patterns: Mapping[str, tuple[str, Pattern]]) -> dict[str, str]:
    """Return path → content of the rule files of ``patterns``: id → folder and pattern.

    A pattern without rules has no file.

    Raises:
        SpecError: with all problems of the files semgrep.yaml.
    """
    found = {id_: read(folder) for id_, (folder, _) in patterns.items()}
    if problems := [problem for _, each in found.values() for problem in each]:
        raise SpecError(problems)
    titles = vocabulary.read(os.path.dirname(folder) for folder, _ in patterns.values()).titles
    return {
        f"{id_}.yaml": emission.lines({"rules": [*_rules(pattern, found[id_][0], titles)]}, 0) + "\n"
        for id_, (_, pattern) in patterns.items()
        if found[id_][0].rules
    }


def read(folder: str) -> tuple[Rules, list[Problem]]:
    """Return the content of the semgrep.yaml of the pattern in ``folder``, and its problems; with problems no rules."""
    empty = Rules({}, None)
    file = os.path.join(folder, NAME)
    if not packed.exists(file):
        return empty, []
    try:
        text = textfile.read(file, paths.shown(file))
        doc = reader.parse(text, paths.shown(file))
    except DocumentError as error:
        return empty, error.problems
    if problems := metaschema.check(doc, SCHEMA) or hidden_characters(doc, text) or [*_unlisted(doc)]:
        return empty, problems
    return Rules(doc.section("rules"), doc.mapping().get("none")), []  # type: ignore[arg-type] # as the schema says


def rule_id(pattern_id: str, name: str) -> str:
    """Return the id of the rule ``name`` of a pattern."""
    return f"{pattern_id.lower()}-{name}"


def _unlisted(doc: Document) -> Iterator[Problem]:
    """Report examples of technologies that their rule does not list."""
    for name, rule in doc.section("rules").items():
        for technology in rule.get("examples", {}):
            if technology not in rule["technology"]:
                path = ("rules", name, "examples", technology)
                near = metaschema.near(technology, rule["technology"])
                yield doc.key_problem("unknown_technology", path, name=technology, **near)


def _rules(pattern: Pattern, rules: Rules, titles: Mapping[str, str]) -> Iterator[JsonObject]:
    """Yield the rules of a pattern in semgrep's syntax. ``titles``: the titles of references by id."""
    for name, rule in rules.rules.items():
        yield {
            "id": rule_id(pattern["id"], name),
            "languages": rule["languages"],
            "severity": pattern["severity"].upper(),
            "message": _message(pattern, rule["languages"]),
            "metadata": _metadata(pattern, rule, titles),
            **rule["match"],
        }


def _message(pattern: Pattern, languages: list[str]) -> str:
    """Return threat and fix: that of the pattern in its own language, else the principle, which fits every language."""
    summary = pattern["agent_summary"]
    own = pattern["language"] in languages
    fix = summary["fix"] if own else summary.get("principle", summary["check"])
    return unwrap(f"{summary['threat']} {fix} See `tmkb get {pattern['id']}`.")


def _metadata(pattern: Pattern, rule: Mapping[str, Any], titles: Mapping[str, str]) -> JsonObject:
    references = pattern["references"]
    return {
        "category": "security",
        "subcategory": ["audit" if rule["confidence"] == "LOW" else "vuln"],
        "confidence": rule["confidence"],
        "likelihood": pattern["likelihood"].upper(),
        "cwe": [f"{id_}: {titles[id_]}" if id_ in titles else id_ for id_ in references["cwe"]],
        "owasp": [f"{id_} - {titles[id_]}" if id_ in titles else id_ for id_ in references["owasp"]],
        "references": [*references.get("sources", ())],
        "technology": rule["technology"],
        "tmkb": {"id": pattern["id"], "name": unwrap(pattern["name"]), "version": pattern["version"]},
    }
