"""Render patterns and answers for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tmkb.cli.layout import Line, code, indented, text

_PROOF = {
    "proven": "proven for the current files",
    "changed": "changed since it was proven",
    "unproven": "not proven",
}
_STATUS = {
    "proven": "refuses the attacks",
    "compiled": "parsed, not executed",
    "text": "not checked",
    "house": "of the house",
}  # of an idiom
_NO_MATCH = (
    "No pattern matches. Describe what the code does, and with what, for example `tmkb query Flask job that mails "
    "invoices`. `tmkb query --explain …` shows which words counted, `tmkb list` all patterns."
)
_SUMMARY = {
    "threat": "Threat",
    "check": "Check",
    "principle": "Principle",
    "fix": "Fix",
    "house_rule": "House rule",
}
_LEGEND = (
    "A weight with + counts for the answer or the pattern, with - against it. It is that of a word, of two words "
    "(with _: and one between), of two symbols (|), or of some characters (~)."
)
STYLES = {"critical": "bold red", "high": "red", "medium": "yellow", "low": "cyan"}


def answer(response: dict[str, Any]) -> list[Line]:
    """Render an answer of `tmkb.knowledge.answer`, for agents or people."""
    lines = [line for pattern in response["patterns"] for line in [*page(pattern), *text()]]
    if template := response.get("code_pattern"):
        facts = [template["language"], template["framework"], *([template["pattern"]] if "pattern" in template else [])]
        lines += _heading(f"Start from this ({', '.join(facts)}; {_STATUS[template['status']]})")
        lines += [*indented(code(template["secure_template"], template["language"])), *text()]
        lines += [*text(template["caution"]), *text()] if "caution" in template else []
    count, included, size = (response[key] for key in ("pattern_count", "patterns_included", "token_count"))
    if not count:
        return lines + text(_NO_MATCH) + text((response["note"], "dim"))
    lines += [*text(response["note"]), *text()] if "note" in response else []
    return lines + text((f"{included} of {count} patterns, {size} tokens", "dim"))


def explanation(facts: dict[str, Any]) -> list[Line]:
    """Render the explanation of an answer from `tmkb.knowledge.retrieval.index`."""
    verdict = "Answered" if facts["answered"] else "Not answered"
    lines = text(f"{verdict}: probability {facts['probability']}, at least {facts['needed']} needed.")
    lines += text((_LEGEND, "dim"))
    lines += _features(facts)
    if nearest := facts.get("nearest"):
        lines += text(("Nearest, not shown:", "dim"))
    for pattern in facts.get("patterns", nearest or []):
        lines += text() + text((pattern["id"], "bold"), f"  {pattern['score']}, probability {pattern['probability']}")
        lines += _features(pattern)
    return lines


def _features(facts: Mapping[str, Any]) -> list[Line]:
    return [
        line for each in facts["for"] + facts["against"] for line in text(f"  {each['weight']:+.3f}  {each['feature']}")
    ]


def page(pattern: dict[str, Any], titles: Mapping[str, str] | None = None) -> list[Line]:
    """Render one pattern, complete or short. ``titles``: the titles of references."""
    severity = pattern["severity"], STYLES[pattern["severity"]]
    title = text((pattern["id"], "bold"), "  ", severity, "  ", pattern.get("name", ""))
    return title + indented(_body(pattern, titles or {}))


def _body(pattern: dict[str, Any], titles: Mapping[str, str]) -> list[Line]:
    lines = []
    for key, name in _SUMMARY.items():
        lines += indented(text(pattern[key]), (f"{name:<11}", "bold")) if key in pattern else []
    changes = pattern.get("house", {})
    if "severity" in changes:
        lines += indented(text(f"{changes['severity']} instead of {changes['instead_of']}"), ("House      ", "bold"))
    if "description" in pattern:
        lines += text() + text(pattern["description"])
    if scenario := pattern.get("attack_scenario"):
        lines += _list("Preconditions", scenario["preconditions"]) + _list("Steps", scenario.get("steps", []))
        lines += _list("Impact", [f"{property_}: {degree}" for property_, degree in scenario["impact"].items()])
    for mitigation in pattern.get("mitigations", []):
        lines += _mitigation(mitigation)
    lines += _fix(pattern)
    related = pattern.get("related_patterns", [])
    lines += _list("Related", [f"{other['id']} ({other['relationship']})" for other in related])
    references = pattern.get("references", {})
    names = [name for key in ("cwe", "owasp", "asvs") for name in references.get(key, [])]
    lines += _list("References", [f"{name}  {titles.get(name, '')}".rstrip() for name in names])
    if facts := pattern.get("provenance"):
        lines += _provenance(facts)
    return lines


def _provenance(facts: dict[str, Any]) -> list[Line]:
    proven = facts["proven"]
    when = f" ({proven['date']}, tmkb {proven['tmkb']})" if proven and facts["proof"] != "unproven" else ""
    proof = _PROOF[facts["proof"]]
    if facts["proof"] == "proven" and facts["attacks"]:
        proof += f" against {facts['attacks']} attacks and {facts['wrong_fixes']} wrong fixes"
    summary = f"Version {facts['version']}, reviewed {facts['reviewed']}, {proof}{when}"
    return _list("Sources", facts["sources"]) + text() + text(summary)


def _mitigation(mitigation: dict[str, Any]) -> list[Line]:
    lines = text() + _heading(f"{mitigation['id']}  {mitigation['name']}")
    lines += text(f"{mitigation['description']} (effectiveness: {mitigation['effectiveness']})")
    for tradeoff in mitigation.get("tradeoffs", []):
        lines += indented(text(tradeoff), "- ")
    for example in mitigation.get("code_examples", []):
        for key in ("vulnerable", "secure"):
            lines += text() + text((f"{key.capitalize()}:", "italic")) + indented(code(example[key], "python"))
    return lines


def _fix(pattern: Mapping[str, Any]) -> list[Line]:
    """Render the fix for the framework that was asked for, or else the names of those that have one."""
    if fix := pattern.get("code_pattern"):
        lines = text() + _heading(f"Fix for {fix['framework']} ({_STATUS[fix['status']]})")
        lines += indented(code(fix["secure_template"], fix["language"]))
        for remark in filter(None, (fix.get("caution"), pattern.get("note"))):
            lines += text() + text(remark)
        return lines
    names = pattern.get("frameworks", [])
    advice = "`tmkb get ID --framework NAME` shows the fix for one of them, or for a library such as Knex."
    return text() + _heading("Frameworks") + text(f"{', '.join(names)}. {advice}") if names else []


def _list(heading: str, items: list[str]) -> list[Line]:
    entries = [line for item in items for line in indented(text(item), "- ")]
    return text() + _heading(heading) + entries if items else []


def _heading(content: str) -> list[Line]:
    return text((content, "bold"))
