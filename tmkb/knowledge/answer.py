"""Render patterns for clients: summaries within a token budget for agents, full patterns for people.

An answer is compact JSON, joined from fragments that were encoded and counted in advance. ``token_count`` is the size
of the whole answer, including that number. Counts can be added because cl100k_base splits a text between punctuation
and the letter after it: each fragment begins with the word ``id`` of its first key, after the quote. A test compares
the sums with the tokenizer.
"""

from __future__ import annotations

from tmkb import stdlib
from tmkb.schema.values import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tmkb.knowledge.pattern import Mitigation, Pattern
    from tmkb.schema.values import JsonObject

LANGUAGE = "python"  # of all example code, also that of patterns for any language
_SUMMARY = ("threat", "check", "fix")
encoded = stdlib.encoder()
_HEAD = '{"pattern_count":%d,"patterns_included":%d,"patterns":['
_TAIL = 'token_count":%d,"token_limit_reached":%s}'
_FIRST, _NEXT, _LAST = '{"', ',{"', '],"'  # before the first pattern, between two, and after the last
CODE = 'code_pattern":%s,"'


@record
class Answer:
    """An answer as JSON, and the facts for the log."""

    text: str
    pattern_count: int
    patterns_included: int
    token_count: int


def fragments(patterns: Sequence[Pattern], count: Callable[[str], int]) -> dict[str, JsonObject]:
    """Return the parts that `Renderer` joins; ``count`` returns the tokens of a text.

    Each pattern is a part of its own, for agents and for people, because an answer needs only a few.
    """
    frame: JsonObject = {
        "none": count(_HEAD % (1, 0) + _LAST),
        "some": count(_HEAD % (1, 1) + _FIRST),
        "false": count(_TAIL % (1, "false")),
        "true": count(_TAIL % (1, "true")),
    }
    summaries: list[Any] = [
        fragment(summary(p), count) | {"template": _template(p, count), "brief": _brief(p, count)} for p in patterns
    ]
    full: list[Any] = [fragment(in_full(p), count) for p in patterns]
    shown = {"agent": summaries, "human": full}
    return {"frame": frame, **{f"{kind}/{n}": each for kind in shown for n, each in enumerate(shown[kind])}}


class Renderer:
    """Joins fragments to answers. Patterns are identified by their index in the library."""

    def __init__(self, part: Callable[[str], JsonObject]) -> None:
        """``part`` returns a part of `fragments` by name."""
        self.part = part
        self.frame: Any = part("frame")
        self.fragments: dict[str, Any] = {}

    def for_agent(self, numbers: Sequence[int], limit: int) -> Answer:
        """Return the leading summaries that fit into ``limit`` tokens, and the first template if it fits as well.

        Cautions are left out of all summaries if the answer does not fit otherwise.
        """
        chosen = self._fragments("agent", numbers)
        template = chosen[0]["template"] if chosen else None
        if self.size(chosen, template, False) > limit:
            chosen = [each["brief"] or each for each in chosen]
        count = 0
        while count < len(chosen) and self.size(chosen[: count + 1], None, bool(template)) <= limit:
            count += 1
        cut = count < len(chosen)
        if template and count and self.size(chosen[:count], template, cut) <= limit:
            return self.join(chosen, count, template, cut)
        return self.join(chosen, count, None, cut or bool(template))

    def for_human(self, numbers: Sequence[int], template: Any = None) -> Answer:
        """Return the patterns in full, and the fragment ``template`` after them."""
        return self.join(self._fragments("human", numbers), len(numbers), template, False)

    def _fragments(self, kind: str, numbers: Sequence[int]) -> list[Any]:
        """Return the fragments of patterns, each read at its first use."""
        names = [f"{kind}/{number}" for number in numbers]
        for name in names:
            if name not in self.fragments:
                self.fragments[name] = self.part(name)
        return [self.fragments[name] for name in names]

    def join(self, chosen: Sequence[Any], count: int, template: Any, cut: bool) -> Answer:
        """Return the answer with the first ``count`` of the ``chosen`` patterns.

        Args:
            chosen: fragments of patterns.
            count: how many of them are included.
            template: a fragment after the patterns, or None.
            cut: whether something was left out for size.
        """
        included = chosen[:count]
        text = _HEAD % (len(chosen), count) + (_FIRST if included else "")
        text += _NEXT.join(fragment["text"] for fragment in included) + _LAST
        text += template["text"] if template else ""
        size = self.size(included, template, cut)
        return Answer(text + _TAIL % (size, "true" if cut else "false"), len(chosen), count, size)

    def size(self, included: Sequence[Any], template: Any, cut: bool) -> int:
        """Return the tokens of an answer with these fragments, including those of the number itself."""
        size: int = self.frame["true" if cut else "false"] + self.frame["some" if included else "none"]
        size += sum(fragment["more"] for fragment in included[:-1]) + (included[-1]["last"] if included else 0)
        size += template["tokens"] if template else 0
        return size + (size > 999)  # three digits are one token, which the frame includes


def summary(pattern: Pattern, caution: bool = True) -> dict[str, Any]:
    """Return the keys of a pattern that agents get, with or without its caution.

    The contract of `tmkb_query` has no keys for a caution and a house rule, so both follow the fix.
    """
    texts, rule = pattern["agent_summary"], house_rule(pattern)
    value = {"id": pattern["id"], "severity": pattern["severity"], **{key: texts[key] for key in _SUMMARY}}
    more = [texts["caution"]] if caution and "caution" in texts else []
    more += [f"House rule: {rule}"] if rule else []
    return {**value, "fix": " ".join([value["fix"], *more])}


def house_rule(pattern: Pattern) -> str | None:
    """Return what the organization requires in addition to ``pattern``; None without such a rule."""
    rule: str | None = pattern.get("house", {}).get("rule")
    return rule and unwrap(rule)


def house(pattern: Pattern) -> dict[str, Any]:
    """Return what readers of a complete pattern see of the changes of the organization."""
    changes = pattern.get("house", {})
    return without_empty({key: changes.get(key) for key in ("severity", "instead_of", "rule")})


def in_full(pattern: Pattern) -> dict[str, Any]:
    """Return the keys of a pattern that people get, without empty ones."""
    related = [{"id": each["id"], "relationship": each["relationship"]} for each in pattern.get("related_patterns", [])]
    return summary(pattern) | without_empty(
        {
            "name": pattern["name"],
            "likelihood": pattern["likelihood"],
            "description": unwrap(pattern["description"]),
            "attack_scenario": attack_scenario(pattern),
            "mitigations": [_mitigation(pattern, each) for each in pattern["mitigations"]],
            "related_patterns": related,
            "references": without_empty({key: pattern["references"].get(key) for key in ("cwe", "owasp")}),
            "house": house(pattern),
        }
    )


def attack_scenario(pattern: Pattern) -> dict[str, Any]:
    """Return the attack scenario of a pattern, with the steps of its proof."""
    scenario = pattern["attack_scenario"]
    steps = {"preconditions": scenario["preconditions"], "steps": pattern["steps"], "impact": scenario["impact"]}
    return without_empty(steps)


def _mitigation(pattern: Pattern, mitigation: Mitigation) -> dict[str, Any]:
    code = [{"vulnerable": pattern["vulnerable"], "secure": mitigation["secure"]}] if "secure" in mitigation else []
    return without_empty(
        {
            "id": mitigation["id"],
            "name": mitigation["name"],
            "description": unwrap(mitigation["description"]),
            "effectiveness": mitigation["effectiveness"],
            "tradeoffs": mitigation.get("tradeoffs"),
            "code_examples": code,
        }
    )


def fragment(value: dict[str, Any], count: Callable[[str], int]) -> dict[str, Any]:
    """Return the ``value`` of a pattern as `Renderer.join` joins it, with its tokens before others and as the last."""
    text = encoded(value).removeprefix(_FIRST)
    return {"text": text, "more": count(text + _NEXT), "last": count(text + _LAST)}


def _brief(pattern: Pattern, count: Callable[[str], int]) -> dict[str, Any] | None:
    """Return the fragment without the caution; None if there is no caution."""
    return fragment(summary(pattern, caution=False), count) if "caution" in pattern["agent_summary"] else None


def _template(pattern: Pattern, count: Callable[[str], int]) -> dict[str, Any] | None:
    if "template" not in pattern:
        return None
    code = {"language": LANGUAGE, "framework": pattern["framework"], "secure_template": pattern["template"]}
    return counted(CODE, code, count)


def counted(form: str, value: object, count: Callable[[str], int]) -> dict[str, Any]:
    """Return ``value`` in ``form`` as `Renderer.join` puts it after the patterns, with its tokens."""
    text = form % encoded(value)
    return {"text": text, "tokens": count(text)}


def unwrap(text: str) -> str:
    """Return ``text`` on one line, with single spaces."""
    return " ".join(text.split())


def without_empty(value: dict[str, Any]) -> dict[str, Any]:
    """Return ``value`` without keys whose value is empty or None."""
    return {key: inner for key, inner in value.items() if inner}
