"""Full patterns, and their Markdown pages."""

import json

import pytest

from tmkb.knowledge import catalog, library


@pytest.fixture(scope="session")
def patterns():
    return library.load(None).patterns


@pytest.fixture(scope="session")
def rows(patterns):
    return catalog.parts(patterns)["catalog"]["patterns"]


def test_keys_of_a_full_pattern(patterns):
    pattern = next(
        p for p in patterns if p["tier"] == "A" and len(p["mitigations"]) > 1 and "caution" in p["agent_summary"]
    )
    shown = catalog.in_full(pattern)

    assert list(shown) == [
        "id", "name", "version", "reviewed", "tier", "category", "subcategory", "language", "framework", "severity",
        "likelihood", "threat", "check", "principle", "fix", "caution", "description", "blind_spots", "generalizes_to", "attack_scenario",
        "vulnerable", "secure_template", "mitigations", "principles", "testing", "related_patterns", "references",
    ]  # fmt: skip
    assert list(shown["attack_scenario"]) == ["preconditions", "steps", "impact"]
    assert shown["mitigations"][0]["secure"] == pattern["mitigations"][0]["secure"]
    assert "\n" not in shown["description"]
    assert not {"code", "kind", "triggers"} & set(shown)


def test_empty_keys_are_omitted(patterns):
    bare = {k: v for k, v in patterns[0].items() if k not in ("blind_spots", "vulnerable", "template", "subcategory")}
    bare |= {"steps": [], "mitigations": [{"id": "M", "name": "n", "description": "d", "effectiveness": "high"}]}
    shown = catalog.in_full(bare)

    assert not {"blind_spots", "vulnerable", "secure_template", "subcategory"} & set(shown)
    assert "steps" not in shown["attack_scenario"]
    assert list(shown["mitigations"][0]) == ["id", "name", "description", "effectiveness"]


def test_a_full_pattern_is_json(patterns):
    for pattern in patterns:
        assert json.loads(json.dumps(catalog.in_full(pattern))) == catalog.in_full(pattern)


def test_a_page_contains_all_texts(patterns):
    for pattern in patterns:
        shown = catalog.in_full(pattern)
        page = catalog.pattern_page(shown, {})

        assert page.startswith(f"# {pattern['id']}: {pattern['name']}\n")
        assert (
            page.count("\n```python\n") == page.count("\n```\n") == 1 + sum("secure" in m for m in shown["mitigations"])
        )
        for text in texts(
            {key: value for key, value in shown.items() if key not in ("version", "tier", "subcategory")}
        ):
            assert text.strip() in page or text == shown.get("secure_template"), text  # part of the secure code


def texts(value):
    """Return all strings inside ``value``."""
    if isinstance(value, dict):
        return [text for inner in value.values() for text in texts(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in texts(inner)]
    return [value] if isinstance(value, str) else []


def test_a_page_of_a_pattern_without_code(patterns):
    bare = {k: v for k, v in patterns[0].items() if k not in ("vulnerable", "template", "code")}
    bare["mitigations"] = [{k: v for k, v in m.items() if k != "secure"} for m in patterns[0]["mitigations"]]
    page = catalog.pattern_page(catalog.in_full(bare), {})

    assert "```" not in page
    assert "## Vulnerable" not in page
    assert "\n\n\n" not in page


def test_the_index_lists_patterns_by_category(rows):
    lines = catalog.index_page(rows).splitlines()

    assert lines[0] == "# Patterns"
    assert [line for line in lines if line.startswith("## ")] == [
        f"## {c}" for c in sorted({r["category"] for r in rows})
    ]
    assert sum(line.startswith("- ") for line in lines) == len(rows)


def test_a_category_page_contains_summaries(rows):
    shown = catalog.category_page("x", rows[:2])

    assert shown.startswith(f"# x\n\n## {rows[0]['id']}: {rows[0]['name']}\n\nSeverity: ")
    assert all(f"- Fix: {row['fix']}" in shown for row in rows[:2])


def test_an_empty_library():
    assert catalog.index_page([]) == "# Patterns\n"
    assert catalog.parts([]) == {"catalog": {"patterns": []}, "wholes": {}}
