"""Adding example questions, the format of their files, and near-duplicates."""

import json

import pytest

from tmkb.authoring import collection
from tmkb.errors import SpecError
from tmkb.knowledge import questions
from tmkb.schema import problems

KNOWN = {"ACME-X-001", "ACME-X-002"}


def line(context, relevant=None, kind="task", **more):
    relevant = {"ACME-X-001": 3} if relevant is None else relevant
    return json.dumps({"context": context, "kind": kind, "relevant": relevant, **more})


def add(folder, *lines, author="me"):
    return collection.add(lines, author, str(folder), KNOWN)


def test_questions_are_added_beside_their_best_pattern(tmp_path):
    grades = {"ACME-X-001": 1, "ACME-X-002": 3}
    code = "def f(id):\n\treturn \"x\"  # 'y' é\n"
    lines = [line("one thing"), line(code, grades, "code", language="python"), line("no such thing", {}, "negative")]

    assert add(tmp_path, *lines) == (3, [])
    read = questions.read([str(tmp_path)])
    assert read.problems == []
    assert read.questions == [
        questions.Question("one thing", "task", "any", "me", {"ACME-X-001": 3}),
        questions.Question(code.strip("\n"), "code", "python", "me", grades),
        questions.Question("no such thing", "negative", "any", "me", {}),
    ]
    assert questions.review(questions.by_file([str(tmp_path)]), KNOWN) == []


def test_adding_twice_changes_nothing(tmp_path):
    add(tmp_path, line("share the folder with a partner of the firm"))
    before = (tmp_path / "acme_x_001" / "questions.yaml").read_text()
    added, refused = add(tmp_path, line("Share the folder with the partners of the firm"), author="you")

    assert added == 0
    assert refused == ["nearly the same as another: Share the folder with the partners of the firm"]
    assert (tmp_path / "acme_x_001" / "questions.yaml").read_text() == before


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (line("x", {"ACME-X-003": 3}), "unknown pattern ACME-X-003"),
        (line(" \n"), "`context` must be a text"),
        (line("x", {"ACME-X-001": 4}), "the grades 1, 2 or 3"),
        (line("x", kind="poem"), "`kind` must be one of agent,"),
        (line("x", {}), "has no grades"),
        (line("x", kind="negative"), "has no grades"),
        ("{", "Expecting property name"),
        ('{"context": "x"}', "kind"),
        ('["x"]', "`context` must be a text"),
        (line(5), "`context` must be a text"),
        (line("x", ["ACME-X-001"]), "`relevant` must be a map"),
        (line("x", {"ACME-X-001": [3]}), "the grades 1, 2 or 3"),
        (line("x", language=7), "`language`"),
    ],
)
def test_invalid_lines_are_left_out(tmp_path, text, reason):
    added, refused = add(tmp_path, text, line("a good one"))

    assert added == 1
    assert len(refused) == 1 and refused[0].startswith("line 1: ") and reason in refused[0]


def test_problems_of_edited_files(tmp_path):
    (tmp_path / "acme_x_001").mkdir()
    file = tmp_path / "acme_x_001" / "questions.yaml"
    file.write_text(
        "kind: questions\nquestions:\n"
        '  - {context: "delete the account of a customer", kind: task, author: me}\n'
        '  - {context: "delete the accounts of customers", kind: task, author: me, grades: {ACME-X-009: 3, ACME-X-001: 1}}\n'
        '  - {context: "something else", kind: task, author: me, grades: {ACME-X-002: 3}}\n'
    )
    found = questions.review(questions.by_file([str(tmp_path)]), KNOWN)

    assert [problem.rule for problem in found] == ["question_elsewhere", "unknown_grade", "duplicate_question"]
    assert "questions.yaml:5:" in problems.line(found[0])


def test_a_question_with_unknown_keys_is_reported(tmp_path):
    (tmp_path / "acme_x_001").mkdir()
    (tmp_path / "acme_x_001" / "questions.yaml").write_text(
        "kind: questions\nquestions:\n  - {context: x, kind: task, author: me, grade: 3}\n"
    )
    read = questions.read([str(tmp_path)])

    assert read.questions == []
    assert len(read.problems) == 1 and read.problems[0].line == 3


def test_nothing_is_written_beside_a_file_with_problems(tmp_path):
    add(tmp_path, line("one thing"), line("no such thing", {}, "negative"))
    file = tmp_path / "acme_x_001" / "questions.yaml"
    file.write_text(file.read_text().replace('"task"', "poem"))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.yaml")}

    with pytest.raises(SpecError) as error:
        add(tmp_path, line("another thing"), line("nothing at all", {}, "negative"))
    assert error.value.problems[0].file.endswith("questions.yaml")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_an_author_that_no_file_may_contain_is_refused(tmp_path):
    with pytest.raises(ValueError, match="The author 'Me Too'"):
        add(tmp_path, line("one thing"), author="Me Too")
    assert [*tmp_path.iterdir()] == []
