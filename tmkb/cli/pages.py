"""Render patterns and answers for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group
from rich.text import Text

from tmkb.cli import output

_PROOF = {
    "proven": "proven for the current files",
    "changed": "changed since it was proven",
    "unproven": "not proven",
}
_NO_MATCH = "No pattern matches. Describe what the code does, and with what. See --explain and `tmkb list`."
_STYLES = {"critical": "bold red", "high": "red", "medium": "yellow", "low": "cyan"}


def answer(response: dict[str, Any]) -> Group:
    """Render an answer of `tmkb.knowledge.answer`, for agents or people."""
    parts: list[Any] = [part for pattern in response["patterns"] for part in (page(pattern), Text())]
    if code := response.get("code_pattern"):
        parts.append(_heading(f"Start from this ({code['language']}, {code['framework']})"))
        parts += [_indented(output.code(code["secure_template"], code["language"])), Text()]
    count, included, size = (response[key] for key in ("pattern_count", "patterns_included", "token_count"))
    summary = f"{included} of {count} patterns, {size} tokens" if count else _NO_MATCH
    return Group(*parts, Text(summary, style="dim"))


def explanation(facts: dict[str, Any]) -> Group:
    """Render the explanation of an answer from `tmkb.knowledge.retrieval.index`."""
    evidence, needed = facts["for"], facts["needed"]
    verdict = "Answered" if facts["answered"] else "Not answered"
    lines = [Text(f"{verdict}: {evidence['cues']} from cues and {evidence['people']} from people, {needed} needed.")]
    lines += [Text(f"Against: {topic} ({', '.join(terms)})") for topic, terms in facts["against"].items()]
    lines += [Text(f"Read {word} as {correction}") for word, correction in facts["mended"].items()]
    if nearest := facts.get("nearest"):
        lines.append(Text("Nearest, below the threshold:", style="dim"))
    for pattern in facts.get("patterns", nearest or []):
        lines.append(Text.assemble((pattern["id"], "bold"), f"  {pattern['score']}"))
        if pattern["related"]:
            lines.append(Text("  related to one above"))
        lines += [Text(f"  {cue['weight']:+g}  {cue['cue']}") for cue in pattern["cues"]]
        lines.append(Text(f"  {pattern['text']:+g}  its text"))
    return Group(*lines)


def page(pattern: dict[str, Any], titles: Mapping[str, str] | None = None) -> Group:
    """Render one pattern, complete or short. ``titles``: the titles of references."""
    title = Text.assemble(
        (pattern["id"], "bold"),
        "  ",
        (pattern["severity"], _STYLES[pattern["severity"]]),
        "  ",
        pattern.get("name", ""),
    )
    return Group(title, _indented(Group(*_body(pattern, titles or {}))))


def _body(pattern: dict[str, Any], titles: Mapping[str, str]) -> Iterator[Any]:
    for key in ("threat", "check", "fix"):
        yield output.Indented(Text(pattern[key]), Text(f"{key.capitalize():<7}", style="bold", end=""))
    if "description" in pattern:
        yield from (Text(), Text(pattern["description"]))
    if "attack_scenario" in pattern:
        yield from _scenario(pattern["attack_scenario"])
    for mitigation in pattern.get("mitigations", []):
        yield from _mitigation(mitigation)
    if related := pattern.get("related_patterns"):
        yield from _list("Related", [f"{other['id']} ({other['relationship']})" for other in related])
    if references := pattern.get("references"):
        names = [name for key in ("cwe", "owasp") for name in references.get(key, [])]
        yield from _list("References", [f"{name}  {titles.get(name, '')}".rstrip() for name in names])
    if facts := pattern.get("provenance"):
        yield from _provenance(facts)


def _provenance(facts: dict[str, Any]) -> Iterator[Any]:
    yield from _list("Sources", facts["sources"])
    proven = facts["proven"]
    when = f" ({proven['date']}, tmkb {proven['tmkb']})" if proven and facts["proof"] != "unproven" else ""
    text = f"Version {facts['version']}, reviewed {facts['reviewed']}, {_PROOF[facts['proof']]}{when}"
    yield from (Text(), Text(text))


def _scenario(scenario: dict[str, Any]) -> Iterator[Any]:
    yield from _list("Preconditions", scenario["preconditions"])
    yield from _list("Steps", scenario.get("steps", []))
    yield from _list("Impact", [f"{property_}: {degree}" for property_, degree in scenario["impact"].items()])


def _mitigation(mitigation: dict[str, Any]) -> Iterator[Any]:
    yield Text()
    yield _heading(f"{mitigation['id']}  {mitigation['name']}")
    yield Text(f"{mitigation['description']} (effectiveness: {mitigation['effectiveness']})")
    for tradeoff in mitigation.get("tradeoffs", []):
        yield output.Indented(Text(tradeoff), "- ")
    for example in mitigation.get("code_examples", []):
        for key in ("vulnerable", "secure"):
            yield from (
                Text(),
                Text(f"{key.capitalize()}:", style="italic"),
                _indented(output.code(example[key], "python")),
            )


def _list(heading: str, items: list[str]) -> Iterator[Any]:
    if items:
        yield from (Text(), _heading(heading), *(output.Indented(Text(item), "- ") for item in items))


def _heading(text: str) -> Text:
    return Text(text, style="bold")


def _indented(part: Any) -> output.Indented:
    return output.Indented(part)
