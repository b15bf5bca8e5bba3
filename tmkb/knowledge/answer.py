"""Patterns rendered for a reader: for an agent within a budget of tokens, for a person in full.

An answer is compact JSON. Its ``token_count`` is the size of the whole answer, itself included.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tmkb.knowledge import tokens
from tmkb.knowledge.pattern import Mitigation, Pattern

_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


class Answer:
    """``text`` is what the reader gets, ``value`` the same before it was written down."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value
        self.text = _ENCODER.encode(value)


def for_agent(patterns: Sequence[Pattern], limit: int) -> Answer:
    """The summaries of ``patterns`` in order until one does not fit into ``limit`` tokens, then the best's template."""
    more = bool(patterns) and "template" in patterns[0]  # whether something is left out as long as there is no template
    best = _answer(patterns, 0, None, cut=bool(patterns))
    for count in range(1, len(patterns) + 1):
        longer = _answer(patterns, count, None, cut=more or count < len(patterns))
        if longer.value["token_count"] > limit:
            break
        best = longer
    included = best.value["patterns_included"]
    if more and included:
        with_template = _answer(patterns, included, patterns[0], cut=included < len(patterns))
        return with_template if with_template.value["token_count"] <= limit else best
    return best


def for_human(patterns: Sequence[Pattern]) -> Answer:
    """Everything about ``patterns`` that a reader can use; keys without content are left out."""
    return _measured(
        {
            "pattern_count": len(patterns),
            "patterns_included": len(patterns),
            "patterns": [in_full(pattern) for pattern in patterns],
        },
        cut=False,
    )


def summary(pattern: Pattern) -> dict[str, Any]:
    """The few keys that an agent gets of a pattern."""
    return {"id": pattern["id"], "severity": pattern["severity"], **pattern["agent_summary"]}


def in_full(pattern: Pattern) -> dict[str, Any]:
    """The keys that a person gets of a pattern."""
    scenario = pattern["attack_scenario"]
    return summary(pattern) | _filled(
        {
            "name": pattern["name"],
            "likelihood": pattern["likelihood"],
            "description": _unwrapped(pattern["description"]),
            "attack_scenario": _filled(
                {"preconditions": scenario["preconditions"], "steps": pattern["steps"], "impact": scenario["impact"]}
            ),
            "mitigations": [_mitigation(pattern, each) for each in pattern["mitigations"]],
            "related_patterns": [
                {"id": other["id"], "relationship": other["relationship"]}
                for other in pattern.get("related_patterns", [])
            ],
            "references": _filled({key: pattern["references"].get(key) for key in ("cwe", "owasp")}),
        }
    )


def _mitigation(pattern: Pattern, mitigation: Mitigation) -> dict[str, Any]:
    examples = []
    if "secure" in mitigation:
        examples.append({"vulnerable": pattern["vulnerable"], "secure": mitigation["secure"]})
    return _filled(
        {
            "id": mitigation["id"],
            "name": mitigation["name"],
            "description": _unwrapped(mitigation["description"]),
            "effectiveness": mitigation["effectiveness"],
            "tradeoffs": mitigation.get("tradeoffs"),
            "code_examples": examples,
        }
    )


def _answer(chosen: Sequence[Pattern], included: int, shown: Pattern | None, cut: bool) -> Answer:
    value: dict[str, Any] = {
        "pattern_count": len(chosen),
        "patterns_included": included,
        "patterns": [summary(pattern) for pattern in chosen[:included]],
    }
    if shown is not None:
        value["code_pattern"] = {key: shown[key] for key in ("language", "framework")} | {
            "secure_template": shown["template"]
        }
    return _measured(value, cut)


def _measured(value: dict[str, Any], cut: bool) -> Answer:
    """The answer with its own size in it: the number that stays true when it is written in."""
    size = 0
    while True:
        answer = Answer(value | {"token_count": size, "token_limit_reached": cut})
        counted = tokens.count(answer.text)
        if counted == size:
            return answer
        size = counted


def _unwrapped(text: str) -> str:
    """``text`` without the line ends that only its file needs."""
    return " ".join(text.split())


def _filled(value: dict[str, Any]) -> dict[str, Any]:
    return {key: inner for key, inner in value.items() if inner}
