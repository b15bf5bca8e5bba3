"""Serve single patterns: lists, full patterns, Markdown pages, prompts, completion and validation.

A server imports this module when it first uses one of these operations.
"""

from __future__ import annotations

import re
from functools import partial

from tmkb.errors import ToolError
from tmkb.knowledge import ids
from tmkb.knowledge.advice import decoded
from tmkb.knowledge.answer import LANGUAGE, attack_scenario, house, summary, unwrap, without_empty
from tmkb.providers.operation import Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from tmkb.knowledge.advice import Adviser
    from tmkb.knowledge.pattern import Pattern
    from tmkb.providers.operation import Operation, Result, StepGenerator
    from tmkb.schema.values import JsonObject, JsonValue

    Row = Mapping[str, str]

COLUMNS = ("id", "name", "severity", "category", "language", "framework")
_HEAD = ("id", "name", "version", "reviewed", "tier", "category", "subcategory", "language", "framework", "severity")
_MITIGATION = ("id", "name", "description", "effectiveness", "implementation_effort", "tradeoffs", "secure")
_COMPLETED = {"ids": "id", "categories": "category"}  # operations for completion → column
OF_CODE = ("language", "framework")
_ANY = "any"  # the language or framework of a pattern that applies to all
_MOST_ANSWERS = 8  # in one prompt
_HUNK = re.compile(r"@@ -[0-9,]+ \+[0-9,]+ @@")
_PARTS = re.compile(rf"^(?=diff --git |--- .*\n\+\+\+ |{_HUNK.pattern})", re.M)  # before a header or hunk of a diff
_MOST_PROBLEMS = 50  # in one result of `validate`


class Catalog:
    """The operations on single patterns.

    Args:
        part: returns a part of what the provider prepared.
        advise: answers the questions that prompts contain.
        adviser: returns what has the code of the patterns, and the stacks.
        rules: when a reviewer comments, for prompts.
    """

    def __init__(
        self, part: Callable[[str], Any], advise: Callable[..., Result], adviser: Callable[[], Adviser], rules: str
    ) -> None:
        rows: Any = part("catalog")["patterns"]
        self.rows: list[dict[str, str]] = rows
        self.patterns: Any = None
        self.part = part
        self.advise = advise
        self.adviser = adviser
        self.rules = rules

    def operation(self, name: str, definition: Mapping[str, Any]) -> Operation:
        """Return the operation ``name`` for the tool, prompt or resource ``definition``."""
        if column := _COMPLETED.get(name):
            return lambda **_: [*self._values(column)]
        if name == "frameworks":
            return lambda **_: sorted(self.adviser().stacks.stacks)
        method: Any = getattr(self, name)
        operation: Operation = method(definition) if name in ("entries", "prompt", "validate") else method
        return operation

    def get(self, id: str, framework: str | None = None) -> JsonObject:
        """Return one pattern in full, the frameworks for which it has code, and the code for ``framework``, if any.

        Raises:
            ToolError: ``id`` names no pattern or several.
        """
        matching, similar = ids.matching(id, self._values("id"))
        if len(matching) > 1:
            raise ToolError("ambiguous_name", field="pattern", value=id, names=", ".join(matching))
        if not matching:
            raise _unknown("pattern", id, similar)
        pattern: JsonObject = self._full(matching[0])
        code, stacks = self._code()[matching[0]], self.adviser().stacks
        frameworks: list[Any] = [stack for stack in stacks.frameworks if stack in code]
        shown: JsonObject = {**pattern, "frameworks": frameworks}
        stack, note = stacks.nearest(framework or "", code)
        if stack:
            shown["code_pattern"] = decoded(code[stack]["text"])
        return {**shown, "note": note} if note else shown

    def find(
        self,
        category: str | None = None,
        severity: str | None = None,
        language: str | None = None,
        framework: str | None = None,
    ) -> JsonObject:
        """Return the rows that match.

        A pattern is for its own language and framework, and for those in which it has an idiom. Those for any language
        or framework pass every filter on it. One idiom has to be in both, if both are given.

        Raises:
            ToolError: a filter names nothing that exists.
        """
        filters = {"category": category, "severity": severity, "language": language, "framework": framework}
        given = {field: value for field, value in filters.items() if value and not is_any(field, value)}
        selected, code = self._selected(given), self._code()
        rows = [row for row in self.rows if passes(row, given, selected, partial(code.__getitem__, row["id"]))]
        return {"count": len(rows), "patterns": [{c: row[c] for c in COLUMNS} for row in rows]}

    def schema(self, kind: str) -> JsonObject:
        """Return the JSON Schema of a kind of file."""
        from tmkb.schema import paths, reader

        files = paths.meta_schemas()
        if kind not in files:
            raise _unknown("kind", kind, files)
        return {"kind": kind, "schema": reader.read(files[kind]).mapping()}

    def page(self, id: str) -> str | None:
        """Return one pattern as Markdown; None if the id is unknown."""
        pattern = self._full(id)
        if pattern is None:
            return None
        code = self._code()[pattern["id"]]
        shown = {stack: decoded(code[stack]["text"]) for stack in self.adviser().stacks.frameworks if stack in code}
        return pattern_page(pattern, shown)

    def index(self) -> str:
        """Return a list of all patterns as Markdown."""
        return index_page(self.rows)

    def section(self, category: str) -> str | None:
        """Return the patterns of one category as Markdown; None if the category is unknown."""
        rows = [row for row in self.rows if row["category"] == category]
        return category_page(category, rows) if rows else None

    def entries(self, definition: Mapping[str, Any]) -> Operation:
        """Return an operation that lists the resources of the URI template in ``definition``."""
        mime_type: JsonObject = {"mimeType": definition["mimeType"]} if "mimeType" in definition else {}

        def entry(row: Row) -> JsonObject:
            uri = definition["uriTemplate"].replace("{id}", row["id"])
            return {"uri": uri, "name": row["id"], "title": row["name"], "description": row["threat"], **mime_type}

        return lambda: [entry(row) for row in self.rows]

    def prompt(self, definition: Mapping[str, Any]) -> Operation:
        """Return an operation that fills the prompt's text.

        {patterns} is the answer to the prompt's arguments, and {rules} says when a reviewer comments.

        To a diff with several hunks it is an answer for each hunk.
        """
        from tmkb.providers.script import substitute

        def operation(**arguments: str) -> JsonValue:
            framework = arguments.get("framework") or _ANY
            context = "\n".join(text for name, text in arguments.items() if name != "framework")
            answers = []
            for heading, part in sections(context):
                text: Any = self.advise(part, framework=framework).content[0]["text"]
                answers.append(f"{heading}:\n{text}" if heading else text)
            patterns = "\n\n".join(answers)
            values = {**dict.fromkeys(definition.get("arguments", {})), **arguments, "framework": framework}
            return substitute(definition["answer"], {**values, "patterns": patterns, "rules": self.rules})

        return operation

    def validate(self, definition: Mapping[str, Any]) -> Operation:
        """Return an operation that checks the text of a pattern, without the files beside it."""

        def operation(text: str) -> StepGenerator:
            from tmkb.knowledge import pattern
            from tmkb.schema import problems

            found = pattern.check_text(text, "pattern.yaml", self._values("id"))
            summary: JsonObject = {"valid": not found, "problem_count": len(found)}
            yield Log("warning" if found else "info", summary, definition["name"])
            shown: list[Any] = [
                {"line": problem.line, "column": problem.column, "sentence": problems.sentence(problem)}
                for problem in found[:_MOST_PROBLEMS]
            ]
            return {**summary, "problems": shown}

        return operation

    def _selected(self, given: Mapping[str, str]) -> set[str]:
        """Return the stacks that the filters ``given`` select. Raises ToolError."""
        stacks = self.adviser().stacks
        for field, value in given.items():
            if field == "severity" or value in self._values(field):  # the tool lists the severities
                continue
            if field not in OF_CODE or not stacks.selected(**{field: value}):
                known = {"language": [*stacks.languages], "framework": stacks.frameworks}.get(field, [])
                raise _unknown(field, value, [*self._values(field), *known])
        return stacks.selected(given.get("language"), given.get("framework"))

    def _code(self) -> dict[str, Mapping[str, Any]]:
        """Return the code of each pattern by id and stack, as `tmkb.knowledge.advice` prepares it."""
        return {row["id"]: each["code"] for row, each in zip(self.rows, self.adviser().patterns, strict=True)}

    def _full(self, id: str) -> Any:
        if self.patterns is None:
            self.patterns = self.part("wholes")
        return self.patterns.get(id.upper())

    def _values(self, column: str) -> list[str]:
        return sorted({row[column] for row in self.rows})


def sections(text: str) -> list[tuple[str, str]]:
    """Return the hunks of a unified diff as pairs of heading and text; each text begins with the path of the file.

    More than 8 hunks are joined into 8 sections or fewer. A text with fewer than two hunks is one section without a
    heading. Headings have numbers only, because a prompt has them among its instructions.
    """
    path = ""
    hunks: list[tuple[str, str]] = []
    for part in _PARTS.split(text):
        if hunk := _HUNK.match(part):
            hunks.append((f"Hunk {len(hunks) + 1} ({hunk[0]})", f"{path}\n{part}"))
        elif part.startswith("--- "):
            path = re.split("[\t\r\n]", part.partition("\n")[2])[0].removeprefix("+++ ").removeprefix("b/")
    if len(hunks) < 2:
        return [("", text)]
    size = -(-len(hunks) // _MOST_ANSWERS)
    groups = [hunks[at : at + size] for at in range(0, len(hunks), size)]
    return [(", ".join(heading for heading, _ in group), "".join(part for _, part in group)) for group in groups]


def _unknown(field: str, value: str, known: Iterable[str]) -> ToolError:
    from tmkb.schema import metaschema

    if near := metaschema.nearest(value, [*known]):
        return ToolError("unknown_name_near", field=field, value=value, nearest=near)
    return ToolError("unknown_name", field=field, value=value)


def is_any(field: str, value: str) -> bool:
    """Return whether ``value`` is the language or framework "any" in any case, which is no filter."""
    return field in OF_CODE and value.lower() == _ANY


def passes(
    row: Mapping[str, Any], given: Mapping[str, str], selected: set[str], code: Callable[[], Collection[str]]
) -> bool:
    """Return whether a pattern passes filters. One with code for a selected stack passes those on stacks.

    Args:
        row: the values of the pattern.
        given: the value of each filter, in any case, none of which `is_any`.
        selected: the stacks of the filters on language and framework, see `Stacks.selected`.
        code: returns the stacks for which the pattern has code; called only if that decides.
    """
    failed = {field for field, value in given.items() if str(row.get(field)).lower() not in (value.lower(), _ANY)}
    return not failed or (failed <= {*OF_CODE} and not selected.isdisjoint(code()))


def parts(patterns: Sequence[Pattern]) -> dict[str, JsonObject]:
    """Return the prepared parts: rows with summaries, and full patterns by id."""
    rows: list[Any] = [{c: str(p.get(c)) for c in COLUMNS} | summary(p) for p in patterns]
    full: dict[str, Any] = {each["id"]: in_full(each) for each in patterns}
    return {"catalog": {"patterns": rows}, "wholes": full}


def in_full(pattern: Pattern) -> dict[str, Any]:
    """Return all keys of a pattern that help a reader, without empty ones."""
    source: Mapping[str, Any] = pattern
    return without_empty(
        {
            **{key: source.get(key) for key in (*_HEAD, "likelihood")},
            **pattern["agent_summary"],
            "description": unwrap(pattern["description"]),
            "blind_spots": pattern.get("blind_spots"),
            "generalizes_to": pattern.get("generalizes_to"),
            "attack_scenario": attack_scenario(pattern),
            "vulnerable": pattern.get("vulnerable"),
            "secure_template": pattern.get("template"),
            "mitigations": [_mitigation(each) for each in pattern["mitigations"]],
            "principles": pattern.get("principles"),
            "testing": pattern.get("testing"),
            "related_patterns": pattern.get("related_patterns"),
            "references": without_empty(pattern["references"]),
            "house": house(pattern),
        }
    )


def _mitigation(mitigation: Mapping[str, Any]) -> dict[str, Any]:
    values = {key: mitigation.get(key) for key in _MITIGATION}
    return without_empty(values | {"description": unwrap(mitigation["description"])})


def index_page(rows: Iterable[Row]) -> str:
    """Return a Markdown list of ``rows`` by category."""
    by_category: dict[str, list[Row]] = {}
    for row in rows:
        by_category.setdefault(row["category"], []).append(row)
    lines = ["# Patterns"]
    for category, inside in sorted(by_category.items()):
        lines += ["", f"## {category}", "", *(f"- {row['id']} ({row['severity']}) {row['name']}" for row in inside)]
    return "\n".join(lines) + "\n"


def category_page(category: str, rows: Iterable[Row]) -> str:
    """Return the ``rows`` of one category as Markdown, each with its summary."""
    lines = [f"# {category}"]
    for row in rows:
        lines += ["", f"## {row['id']}: {row['name']}", "", f"Severity: {row['severity']}", "", *_summary(row)]
    return "\n".join(lines) + "\n"


def pattern_page(pattern: Mapping[str, Any], code: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a pattern `in_full` as Markdown, with its ``code`` by framework."""
    return "\n".join(_lines(pattern, code)) + "\n"


def _lines(pattern: Mapping[str, Any], code: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield from (f"# {pattern['id']}: {pattern['name']}", "")
    yield (
        f"{pattern['severity']} severity, {pattern['likelihood']} likelihood; {pattern['category']}; "
        f"{pattern['language']}, {pattern['framework']}; reviewed {pattern['reviewed']}"
    )
    yield from ("", *_summary(pattern), "", pattern["description"])
    yield from _list("What is overlooked", pattern.get("blind_spots"))
    scenario = pattern["attack_scenario"]
    yield from _list("The attack takes", scenario.get("preconditions"))
    yield from _list("The attack", scenario.get("steps"))
    yield from ("", f"Impact: {', '.join(f'{what} {degree}' for what, degree in scenario['impact'].items())}")
    if vulnerable := pattern.get("vulnerable"):
        yield from ("", "## Vulnerable", *_block(vulnerable))
    yield from ("", "## Mitigations")
    for mitigation in pattern["mitigations"]:
        yield from ("", f"### {mitigation['id']}: {mitigation['name']}", "", mitigation["description"], "")
        yield f"Effectiveness {mitigation['effectiveness']}, effort {mitigation['implementation_effort']}."
        yield from _items(mitigation.get("tradeoffs"))
        yield from _block(mitigation.get("secure"))
    if code:
        yield from ("", "## Frameworks")
    for stack, each in code.items():
        yield from ("", f"### {stack} ({each['status']})", *_items([each["caution"]] if "caution" in each else None))
        yield from _block(each["secure_template"], each["language"])
    yield from _list("Principles", pattern.get("principles"))
    yield from _list("Test that", pattern.get("testing"))
    yield from _list("Also in", pattern.get("generalizes_to"))
    related = pattern.get("related_patterns", [])
    yield from _list("Related", [f"{o['id']} ({o['relationship']}): {o.get('why', '')}".rstrip(": ") for o in related])
    references = pattern["references"]
    yield from _list(
        "References", [one for key in ("cwe", "owasp", "asvs", "sources") for one in references.get(key, [])]
    )


def _summary(pattern: Mapping[str, Any]) -> Iterator[str]:
    for key in (key for key in ("threat", "check", "principle", "fix", "caution") if key in pattern):
        yield f"- {key.capitalize()}: {pattern[key]}"
    changes = pattern.get("house", {})
    if "rule" in changes:
        yield f"- House rule: {changes['rule']}"
    if "severity" in changes:
        yield f"- House severity: {changes['severity']} instead of {changes['instead_of']}"


def _list(heading: str, items: Sequence[str] | None) -> Iterator[str]:
    if items:
        yield from ("", f"## {heading}", *_items(items))


def _items(items: Sequence[str] | None) -> Iterator[str]:
    if items:
        yield from ("", *(f"- {' '.join(item.split())}" for item in items))


def _block(code: str | None, language: str = LANGUAGE) -> Iterator[str]:
    if code:
        yield from ("", f"```{language}", code.rstrip("\n"), "```")
