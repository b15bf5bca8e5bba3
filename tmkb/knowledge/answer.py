"""Patterns rendered for a reader: for an agent within a budget of tokens, for a person in full.

An answer is compact JSON, put together from fragments that were rendered and counted before. Its ``token_count`` is the
size of the whole answer, itself included. Counts add up because cl100k_base cuts a text between punctuation and the
letter behind it: each fragment begins with the word ``id`` of its first key, behind the quote. A test holds the sums
against the tokenizer.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tmkb.knowledge.pattern import Mitigation, Pattern
    from tmkb.schema.values import JsonObject

LANGUAGE = "python"  # that all code of patterns is written in, also of those that matter in any
_ENCODE = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_HEAD = '{"pattern_count":%d,"patterns_included":%d,"patterns":['
_TAIL = 'token_count":%d,"token_limit_reached":%s}'
_FIRST, _MORE, _LAST = '{"', ',{"', '],"'  # what stands before the first pattern, between two, and behind the last
_TEMPLATE = 'code_pattern":%s,"'


class Answer:
    """What the reader gets, and how much of what was chosen is in it."""

    __slots__ = ("chosen", "included", "text")

    def __init__(self, text: str, chosen: int, included: int) -> None:
        self.text = text
        self.chosen = chosen
        self.included = included


def fragments(patterns: Sequence[Pattern], count: Callable[[str], int]) -> dict[str, JsonObject]:
    """The parts that `Renderer` puts answers together from, for either reader; ``count`` gives the tokens of a text."""
    frame: JsonObject = {
        "none": count(_HEAD % (1, 0) + _LAST),
        "some": count(_HEAD % (1, 1) + _FIRST),
        "false": count(_TAIL % (1, "false")),
        "true": count(_TAIL % (1, "true")),
    }
    summaries: list[Any] = [_fragment(summary(p), count) | {"template": _template(p, count)} for p in patterns]
    in_fulls: list[Any] = [_fragment(in_full(p), count) for p in patterns]
    return {"agent": {"frame": frame, "patterns": summaries}, "human": {"patterns": in_fulls}}


class Renderer:
    """Puts answers together from fragments; patterns are told by their number."""

    def __init__(self, part: Callable[[str], JsonObject]) -> None:
        """``part`` gives one of the parts of `fragments`; what only people are shown is asked for when one is there."""
        agent: Any = part("agent")
        self.frame = agent["frame"]
        self.summaries = agent["patterns"]
        self.in_fulls: Any = None
        self.part = part

    def for_agent(self, numbers: Sequence[int], limit: int) -> Answer:
        """The summaries in order until one does not fit into ``limit`` tokens, then the first's template if it does."""
        chosen = [self.summaries[number] for number in numbers]
        template = chosen[0]["template"] if chosen else None
        count = 0
        while count < len(chosen) and self._size(chosen[: count + 1], None, bool(template)) <= limit:
            count += 1
        cut = count < len(chosen)
        if template and count and self._size(chosen[:count], template, cut) <= limit:
            return self._answer(chosen, count, template, cut)
        return self._answer(chosen, count, None, cut or bool(template))

    def for_human(self, numbers: Sequence[int]) -> Answer:
        """Everything that a person can use."""
        if self.in_fulls is None:
            self.in_fulls = self.part("human")["patterns"]
        return self._answer([self.in_fulls[number] for number in numbers], len(numbers), None, False)

    def _answer(self, chosen: Sequence[Any], count: int, template: Any, cut: bool) -> Answer:
        kept = chosen[:count]
        text = _HEAD % (len(chosen), count) + (_FIRST if kept else "")
        text += _MORE.join(fragment["text"] for fragment in kept) + _LAST
        text += template["text"] if template else ""
        size = self._size(kept, template, cut)
        return Answer(text + _TAIL % (size, "true" if cut else "false"), len(chosen), count)

    def _size(self, kept: Sequence[Any], template: Any, cut: bool) -> int:
        """The tokens of the answer, its own size included: the number that is still true when it is written in."""
        size: int = self.frame["true" if cut else "false"] + self.frame["some" if kept else "none"]
        size += sum(fragment["more"] for fragment in kept[:-1]) + (kept[-1]["last"] if kept else 0)
        size += template["tokens"] if template else 0
        return size + (size > 999)  # three digits make a token, and one was counted


def summary(pattern: Pattern) -> dict[str, Any]:
    """The few keys that an agent gets of a pattern."""
    return {"id": pattern["id"], "severity": pattern["severity"], **pattern["agent_summary"]}


def in_full(pattern: Pattern) -> dict[str, Any]:
    """The keys that a person gets of a pattern; those without content are left out."""
    scenario, references = pattern["attack_scenario"], pattern["references"]
    related = [{"id": each["id"], "relationship": each["relationship"]} for each in pattern.get("related_patterns", [])]
    return summary(pattern) | filled(
        {
            "name": pattern["name"],
            "likelihood": pattern["likelihood"],
            "description": unwrapped(pattern["description"]),
            "attack_scenario": filled(
                {"preconditions": scenario["preconditions"], "steps": pattern["steps"], "impact": scenario["impact"]}
            ),
            "mitigations": [_mitigation(pattern, each) for each in pattern["mitigations"]],
            "related_patterns": related,
            "references": filled({key: references.get(key) for key in ("cwe", "owasp")}),
        }
    )


def _mitigation(pattern: Pattern, mitigation: Mitigation) -> dict[str, Any]:
    shown = [{"vulnerable": pattern["vulnerable"], "secure": mitigation["secure"]}] if "secure" in mitigation else []
    return filled(
        {
            "id": mitigation["id"],
            "name": mitigation["name"],
            "description": unwrapped(mitigation["description"]),
            "effectiveness": mitigation["effectiveness"],
            "tradeoffs": mitigation.get("tradeoffs"),
            "code_examples": shown,
        }
    )


def _fragment(value: dict[str, Any], count: Callable[[str], int]) -> dict[str, Any]:
    text = _ENCODE(value).removeprefix(_FIRST)
    return {"text": text, "more": count(text + _MORE), "last": count(text + _LAST)}


def _template(pattern: Pattern, count: Callable[[str], int]) -> dict[str, Any] | None:
    if "template" not in pattern:
        return None
    shown = {"language": LANGUAGE, "framework": pattern["framework"], "secure_template": pattern["template"]}
    text = _TEMPLATE % _ENCODE(shown)
    return {"text": text, "tokens": count(text)}


def unwrapped(text: str) -> str:
    """``text`` without the line ends that only its file needs."""
    return " ".join(text.split())


def filled(value: dict[str, Any]) -> dict[str, Any]:
    """``value`` without the keys that have no content."""
    return {key: inner for key, inner in value.items() if inner}
