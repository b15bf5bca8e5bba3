"""Changes that an organization makes to patterns: what they change, what answers show, and what is refused."""

import json
import textwrap

import pytest

from tmkb.knowledge import library, tokens
from tmkb.knowledge.provider import Knowledge
from tmkb.knowledge.retrieval import index
from tmkb.schema import problems

QUESTION = "publish a document in a background job"
CHANGES = """
    severity: low
    rule: Use enqueue_as() of acme.jobs.
    idioms:
      rails: {code: "AcmeJob.enqueue_as(current_user, id)", caution: It needs acme-jobs 3.}
      flask: {code: "enqueue_as(current_user, publish, document.id)"}
    questions: [hand the dossier to the night shift, let the night shift stamp dossiers]
"""
SETTINGS = {"agent": {"patterns": 5, "tokens": 500}, "human": {"patterns": 3}, "catalog": True}


@pytest.fixture
def folder(patterns):
    return patterns("acme_auth_001")


def write(folder, changes, id_="ACME-AUTH-001"):
    text = textwrap.indent(textwrap.dedent(changes), "    ")
    (folder / "_house.yaml").write_text(f"kind: house\npatterns:\n  {id_}:\n{text}")
    return folder


def knowledge(*folders):
    settings = {**SETTINGS, "folders": [str(folder) for folder in folders]}
    prepared = Knowledge.prepare(settings)
    assert prepared["warnings"] == []
    return Knowledge(settings, json.loads(json.dumps(prepared["parts"])).__getitem__)


def value(result):
    text = result.content[0]["text"]
    assert json.loads(text)["token_count"] == tokens.count(text)
    return json.loads(text)


def test_an_empty_reminder_is_none(folder):
    settings = {**SETTINGS, "folders": [str(folder)], "reminder": ""}

    assert Knowledge.prepare(settings)["parts"]["advice"]["reminders"] is None


def problems_of(folder):
    return [problems.line(each).removeprefix(f"{folder}/_house.yaml:") for each in library.load([str(folder)]).problems]


def test_answers_show_the_changes_as_from_the_house(folder):
    provider = knowledge(write(folder, CHANGES))
    shown = value(provider.advise(QUESTION, framework="rails"))

    assert shown["patterns"][0]["severity"] == "low"
    assert shown["patterns"][0]["house_rule"] == "Use enqueue_as() of acme.jobs."
    assert shown["code_pattern"] == {
        "language": "ruby",
        "framework": "rails",
        "secure_template": "AcmeJob.enqueue_as(current_user, id)",
        "caution": "It needs acme-jobs 3.",
        "status": "house",
    }
    assert shown["token_count"] <= 500


def test_the_contract_of_the_first_server_has_no_new_keys(folder):
    provider = knowledge(write(folder, CHANGES))
    shown = value(provider.query(QUESTION))

    assert {*shown["patterns"][0]} == {"id", "severity", "threat", "check", "fix"}
    assert shown["patterns"][0]["fix"].endswith(" House rule: Use enqueue_as() of acme.jobs.")
    assert shown["code_pattern"]["secure_template"] == "enqueue_as(current_user, publish, document.id)"


def test_a_complete_pattern_tells_what_is_from_the_house(folder):
    provider = knowledge(write(folder, CHANGES))
    whole = provider.operation("get", {})(id="ACME-AUTH-001", framework="rails")

    assert whole["house"] == {"severity": "low", "instead_of": "high", "rule": "Use enqueue_as() of acme.jobs."}
    assert whole["code_pattern"]["status"] == "house"
    page = provider.operation("page", {})(id="ACME-AUTH-001")
    assert "- House rule: Use enqueue_as() of acme.jobs.\n- House severity: low instead of high\n" in page


def index_of(*folders):
    built = index.build(library.load(folders).patterns, index.path([]), lambda ids: {})
    return index.Index(json.loads(json.dumps(built)).__getitem__)


def test_questions_of_the_house_find_a_pattern_that_the_model_knows(tmp_path):
    changes = "questions: [hand the dossier to the night shift, let the night shift stamp dossiers]"
    before = index_of("packaged")
    after = index_of("packaged", str(write(tmp_path, changes, "TMKB-AUTH-001")))
    question = "the night shift should stamp this dossier"

    def found(searched):
        return [searched.patterns[number]["id"] for number in searched.search(question)]

    assert "TMKB-AUTH-001" not in found(before)
    assert found(after)[0] == "TMKB-AUTH-001"
    for other in ("background job processing", "open an invoice by id", "sort a list of numbers"):
        assert before.matches(other) == after.matches(other)


def test_a_pattern_can_be_hidden(folder):
    loaded = library.load([str(write(folder, "hidden: true"))])

    assert (loaded.patterns, loaded.problems, loaded.empty) == ([], [], [])


def test_the_last_folder_decides(folder, tmp_path):
    write(folder, "severity: low\nrule: One.")
    (tmp_path / "other").mkdir()
    other = write(tmp_path / "other", "severity: critical")
    (changed,) = library.load([str(folder), str(other)]).patterns

    assert changed["severity"] == "critical"
    assert changed["house"] == {"severity": "critical", "instead_of": "high", "rule": "One."}


def test_changes_of_packaged_patterns_do_not_need_them(tmp_path):
    loaded = library.load([str(write(tmp_path, "severity: low", "TMKB-AUTH-001"))])

    assert (loaded.patterns, loaded.problems, loaded.empty) == ([], [], [])


@pytest.mark.parametrize(
    ("changes", "id_", "problem"),
    [
        ("severity: low", "ACME-AUTH-010", "3:3: There is no pattern ACME-AUTH-010. Did you mean ACME-AUTH-001?"),
        ("severity: enormous", "ACME-AUTH-001", "4:15: "),
        ("rule: " + "word " * 41, "ACME-AUTH-001", "4:5: The rule has 41 tokens; the limit is 40."),
        ('rule: "a\\u200bb"', "ACME-AUTH-001", "4:11: "),
        ("idioms: {flusk: {code: x}}", "ACME-AUTH-001", "4:14: There is no stack 'flusk'. Did you mean flask?"),
        (
            "idioms: {flask: {code: '" + "x" * 461 + "'}}",
            "ACME-AUTH-001",
            "4:14: The idiom for flask has 461 characters",
        ),
        ("sevrity: low", "ACME-AUTH-001", "4:5: "),
    ],
)
def test_a_mistake_is_reported_and_changes_nothing(folder, changes, id_, problem):
    (line,) = problems_of(write(folder, changes, id_))
    (served,) = library.load([str(folder)]).patterns

    assert line.startswith(problem)
    assert "house" not in served
