"""The form and size of answers, and what is omitted to stay within the token budget."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmkb.knowledge import answer, library, tokens


@pytest.fixture(scope="session")
def patterns():
    return library.load(None).patterns


@pytest.fixture(scope="session")
def renderer(patterns):
    return answer.Renderer(answer.fragments(patterns, tokens.count).__getitem__)


def rendered(patterns, limit=None):
    """Render an answer with all of ``patterns``."""
    renderer = answer.Renderer(answer.fragments(patterns, tokens.count).__getitem__)
    numbers = range(len(patterns))
    return renderer.for_human(numbers) if limit is None else renderer.for_agent(numbers, limit)


def value(answered):
    return json.loads(answered.text)


@given(st.data())
def test_token_count_is_the_size_of_the_answer(renderer, patterns, data):
    numbers = data.draw(st.lists(st.integers(0, len(patterns) - 1), unique=True, max_size=10))
    limit = data.draw(st.integers(0, 1200))
    for answered in (renderer.for_agent(numbers, limit), renderer.for_human(numbers)):
        assert value(answered)["token_count"] == tokens.count(answered.text)
        assert (value(answered)["pattern_count"], value(answered)["patterns_included"]) == (
            answered.pattern_count,
            answered.patterns_included,
        )


@given(text=st.lists(st.text(max_size=12), min_size=4, max_size=4))
def test_token_count_for_any_text(patterns, text):
    threat, check, fix, template = (each.encode("utf-8", "replace").decode() for each in text)
    pattern_ = {**patterns[0], "agent_summary": {"threat": threat, "check": check, "fix": fix}, "template": template}
    for limit in (0, 30, 60, 90, 500):
        answered = rendered([pattern_, pattern_], limit)
        assert value(answered)["token_count"] == tokens.count(answered.text)


def test_answers_are_compact_json(renderer):
    for answered in (renderer.for_agent([0, 1, 2], 500), renderer.for_human([0, 1]), renderer.for_agent([], 500)):
        assert answered.text == json.dumps(value(answered), separators=(",", ":"), ensure_ascii=False)


def test_keys_of_an_answer_for_agents(renderer):
    shown = value(renderer.for_agent([0, 1, 2], 500))

    assert list(shown) == [
        "pattern_count",
        "patterns_included",
        "patterns",
        "code_pattern",
        "token_count",
        "token_limit_reached",
    ]
    assert [list(each) for each in shown["patterns"]] == [["id", "severity", "threat", "check", "fix"]] * 3
    assert list(shown["code_pattern"]) == ["language", "framework", "secure_template"]
    assert shown["token_limit_reached"] is False
    assert shown["token_count"] <= 500


def test_any_three_packaged_patterns_fit(renderer, patterns):
    by_size = sorted(range(len(patterns)), key=lambda n: -renderer.part(f"agent/{n}")["more"])
    for number in range(len(patterns)):
        largest = [number, *[other for other in by_size if other != number][:2]]
        assert value(renderer.for_agent(largest, 500))["token_limit_reached"] is False, patterns[number]["id"]


def test_patterns_are_omitted_from_the_end(renderer):
    full = value(renderer.for_agent([0, 1, 2], 10_000))["token_count"]
    brief = value(renderer.for_agent([0, 1, 2], full - 1))["token_count"]  # without cautions
    least = value(renderer.for_agent([0, 1, 2], 0))["token_count"]
    seen = []
    for limit in range(full + 1):
        shown = value(renderer.for_agent([0, 1, 2], limit))
        seen.append((shown["patterns_included"], "code_pattern" in shown))
        assert shown["pattern_count"] == 3
        assert shown["token_limit_reached"] is (limit < brief)
        assert shown["token_count"] <= max(limit, least)
        assert "code_pattern" not in shown or shown["patterns_included"]

    assert [count for count, _ in seen] == sorted(count for count, _ in seen)
    assert (0, False) in seen and (1, False) in seen and (3, False) in seen and seen[-1] == (3, True)


def test_a_small_template_can_fit_when_a_pattern_does_not(patterns):
    short = {**patterns[0], "template": "x = 1\n"}
    long = {**patterns[1], "agent_summary": {"threat": "word " * 600, "check": "?", "fix": "."}}
    shown = value(rendered([short, long], 500))

    assert (shown["pattern_count"], shown["patterns_included"], "code_pattern" in shown) == (2, 1, True)
    assert shown["token_limit_reached"] is True


def test_keys_of_an_answer_for_people(renderer):
    shown = value(renderer.for_human([0]))

    assert "code_pattern" not in shown
    assert list(shown["patterns"][0]) == [
        "id", "severity", "threat", "check", "fix", "name", "likelihood", "description", "attack_scenario", "mitigations",
        "related_patterns", "references",
    ]  # fmt: skip
    mitigation = shown["patterns"][0]["mitigations"][0]
    assert list(mitigation) == ["id", "name", "description", "effectiveness", "tradeoffs", "code_examples"]
    assert list(mitigation["code_examples"][0]) == ["vulnerable", "secure"]
    assert list(shown["patterns"][0]["attack_scenario"]) == ["preconditions", "steps", "impact"]


def test_empty_keys_are_omitted(patterns):
    bare = {key: value for key, value in patterns[0].items() if key not in ("related_patterns", "code", "vulnerable")}
    bare["mitigations"] = [{"id": "M", "name": "n", "description": "d", "effectiveness": "high"}]
    bare["steps"] = []
    shown = answer.in_full(bare)

    assert "related_patterns" not in shown
    assert list(shown["mitigations"][0]) == ["id", "name", "description", "effectiveness"]
    assert list(shown["attack_scenario"]) == ["preconditions", "impact"]


def test_token_count_around_a_thousand(patterns):
    sizes = set()
    for length in range(1, 400):
        human = rendered([{**patterns[0], "description": "a " * length, "mitigations": [], "steps": []}])
        sizes.add(value(human)["token_count"])
        assert value(human)["token_count"] == tokens.count(human.text)
    longer = rendered([{**patterns[0], "description": "a " * 900}])
    assert value(longer)["token_count"] == tokens.count(longer.text) > 999
