"""Answers: their form, their size, and what is left out when they would be too large."""

import json

import pytest

from tmkb.knowledge import answer, library, tokens


@pytest.fixture(scope="module")
def patterns():
    return library.load([library.PACKAGED]).patterns


@pytest.fixture(autouse=True)
def from_root(monkeypatch):
    from tmkb import paths

    monkeypatch.chdir(paths.ROOT)


def test_the_count_is_the_size_of_the_answer_itself(patterns):
    for chosen in ([], patterns[:1], patterns):
        for answered in (answer.for_agent(chosen, 500), answer.for_human(chosen)):
            assert answered.value["token_count"] == tokens.count(answered.text)
            assert json.loads(answered.text) == answered.value


def test_an_answer_for_agents_has_these_keys_in_this_order(patterns):
    value = answer.for_agent(patterns, 500).value

    assert list(value) == [
        "pattern_count",
        "patterns_included",
        "patterns",
        "code_pattern",
        "token_count",
        "token_limit_reached",
    ]
    assert [list(each) for each in value["patterns"]] == [["id", "severity", "threat", "check", "fix"]] * 3
    assert list(value["code_pattern"]) == ["language", "framework", "secure_template"]
    assert value["token_limit_reached"] is False
    assert value["token_count"] <= 500


def test_what_does_not_fit_is_left_out_from_the_end(patterns):
    full = answer.for_agent(patterns, 500).value["token_count"]
    seen = []
    for limit in range(full + 1):
        answered = answer.for_agent(patterns, limit)
        value = answered.value
        seen.append((value["patterns_included"], "code_pattern" in value))
        assert value["pattern_count"] == 3
        assert value["token_limit_reached"] is (limit < full)
        assert value["token_count"] <= max(limit, answer.for_agent(patterns, 0).value["token_count"])
        assert "code_pattern" not in value or value["patterns_included"]

    assert seen == sorted(seen, key=lambda each: each[0])
    assert (0, False) in seen and (1, False) in seen and (3, False) in seen and seen[-1] == (3, True)


def test_a_smaller_template_can_fit_where_a_pattern_did_not(patterns):
    short = {**patterns[0], "template": "x = 1\n"}
    long = {**patterns[1], "agent_summary": {"threat": "word " * 600, "check": "?", "fix": "."}}
    value = answer.for_agent([short, long], 500).value

    assert (value["pattern_count"], value["patterns_included"], "code_pattern" in value) == (2, 1, True)
    assert value["token_limit_reached"] is True


def test_an_answer_for_people_has_everything(patterns):
    value = answer.for_human(patterns).value

    assert "code_pattern" not in value
    assert list(value["patterns"][0]) == [
        "id", "severity", "threat", "check", "fix", "name", "likelihood", "description", "attack_scenario", "mitigations",
        "related_patterns", "references",
    ]  # fmt: skip
    mitigation = value["patterns"][0]["mitigations"][0]
    assert list(mitigation) == ["id", "name", "description", "effectiveness", "tradeoffs", "code_examples"]
    assert list(mitigation["code_examples"][0]) == ["vulnerable", "secure"]
    assert list(value["patterns"][0]["attack_scenario"]) == ["preconditions", "steps", "impact"]


def test_keys_without_content_are_left_out(patterns):
    bare = {key: value for key, value in patterns[1].items() if key not in ("related_patterns", "code", "vulnerable")}
    bare["mitigations"] = [{"id": "M", "name": "n", "description": "d", "effectiveness": "high"}]
    bare["steps"] = []
    shown = answer.in_full(bare)

    assert "related_patterns" not in shown
    assert list(shown["mitigations"][0]) == ["id", "name", "description", "effectiveness"]
    assert list(shown["attack_scenario"]) == ["preconditions", "impact"]


def test_the_size_stays_true_where_it_gains_a_digit(patterns):
    for length in range(880, 1010):
        human = answer.for_human([{**patterns[1], "description": "a " * length}])
        assert human.value["token_count"] == tokens.count(human.text)
