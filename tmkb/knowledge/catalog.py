"""The library pattern by pattern: a row for each in lists, and each in full, as a value or as a page of Markdown."""

from __future__ import annotations

from tmkb.knowledge.answer import LANGUAGE, filled, unwrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from tmkb.knowledge.pattern import Pattern
    from tmkb.schema.values import JsonObject

    Row = Mapping[str, str]

COLUMNS = ("id", "name", "severity", "category", "language", "framework")
_HEAD = ("id", "name", "version", "reviewed", "tier", "category", "subcategory", "language", "framework", "severity")


def parts(patterns: Sequence[Pattern]) -> dict[str, JsonObject]:
    """What can be prepared: the rows with their summaries, and the patterns in full by their ids."""
    rows: list[Any] = [{c: str(p.get(c)) for c in COLUMNS} | p["agent_summary"] for p in patterns]
    wholes: dict[str, Any] = {pattern["id"]: whole(pattern) for pattern in patterns}
    return {"catalog": {"patterns": rows}, "wholes": wholes}


def whole(pattern: Pattern) -> dict[str, Any]:
    """All that a reader can use of a pattern; keys without content are left out."""
    given: Mapping[str, Any] = pattern
    scenario = pattern["attack_scenario"]
    steps = {"preconditions": scenario["preconditions"], "steps": pattern["steps"], "impact": scenario["impact"]}
    return filled(
        {
            **{key: given.get(key) for key in (*_HEAD, "likelihood")},
            **pattern["agent_summary"],
            "description": unwrapped(pattern["description"]),
            "blind_spots": pattern.get("blind_spots"),
            "generalizes_to": pattern.get("generalizes_to"),
            "attack_scenario": filled(steps),
            "vulnerable": pattern.get("vulnerable"),
            "secure_template": pattern.get("template"),
            "mitigations": [_mitigation(each) for each in pattern["mitigations"]],
            "principles": pattern.get("principles"),
            "testing": pattern.get("testing"),
            "related_patterns": pattern.get("related_patterns"),
            "references": filled(pattern["references"]),
        }
    )


def page(pattern: Mapping[str, Any]) -> str:
    """A `whole` pattern for reading."""
    return "\n".join(_page(pattern)) + "\n"


def index(rows: Iterable[Row]) -> str:
    """What there is, by category."""
    by_category: dict[str, list[Row]] = {}
    for row in rows:
        by_category.setdefault(row["category"], []).append(row)
    lines = ["# Patterns"]
    for category, inside in sorted(by_category.items()):
        lines += ["", f"## {category}", "", *(f"- {row['id']} ({row['severity']}) {row['name']}" for row in inside)]
    return "\n".join(lines) + "\n"


def section(category: str, rows: Iterable[Row]) -> str:
    """The patterns of one category, each with its summary."""
    lines = [f"# {category}"]
    for row in rows:
        lines += ["", f"## {row['id']}: {row['name']}", "", f"Severity: {row['severity']}", "", *_summary(row)]
    return "\n".join(lines) + "\n"


def _mitigation(mitigation: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("id", "name", "description", "effectiveness", "implementation_effort", "tradeoffs", "secure")
    described = {key: mitigation.get(key) for key in keys}
    return filled(described | {"description": unwrapped(mitigation["description"])})


def _page(pattern: Mapping[str, Any]) -> Iterator[str]:
    yield f"# {pattern['id']}: {pattern['name']}"
    yield ""
    yield (
        f"{pattern['severity']} severity, {pattern['likelihood']} likelihood; {pattern['category']}; "
        f"{pattern['language']}, {pattern['framework']}; reviewed {pattern['reviewed']}"
    )
    yield ""
    yield from _summary(pattern)
    yield from ("", pattern["description"])
    yield from _list("What is overlooked", pattern.get("blind_spots"))
    scenario = pattern["attack_scenario"]
    yield from _list("The attack takes", scenario.get("preconditions"))
    yield from _list("The attack", scenario.get("steps"))
    impact = ", ".join(f"{what} {degree}" for what, degree in scenario["impact"].items())
    yield from ("", f"Impact: {impact}")
    yield from _code("Vulnerable", pattern.get("vulnerable"))
    yield from ("", "## Mitigations")
    for mitigation in pattern["mitigations"]:
        yield from ("", f"### {mitigation['id']}: {mitigation['name']}", "", mitigation["description"], "")
        yield f"Effectiveness {mitigation['effectiveness']}, effort {mitigation['implementation_effort']}."
        yield from _items(mitigation.get("tradeoffs"))
        yield from _block(mitigation.get("secure"))
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
    for key in ("threat", "check", "fix"):
        yield f"- {key.capitalize()}: {pattern[key]}"


def _list(heading: str, items: Sequence[str] | None) -> Iterator[str]:
    if items:
        yield from ("", f"## {heading}", *_items(items))


def _items(items: Sequence[str] | None) -> Iterator[str]:
    if items:
        yield from ("", *(f"- {' '.join(item.split())}" for item in items))


def _code(heading: str, text: str | None) -> Iterator[str]:
    if text:
        yield from ("", f"## {heading}", *_block(text))


def _block(text: str | None) -> Iterator[str]:
    if text:
        yield from ("", f"```{LANGUAGE}", text.rstrip("\n"), "```")
