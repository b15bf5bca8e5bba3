"""Files that try to delay a start, to exhaust memory, or to pass for another file."""

import random
import time

import pytest

from tmkb.errors import Problem
from tmkb.knowledge import examples, library, provenance, questions
from tmkb.schema import metaschema, problems

PATTERN = "acme_auth_001"


@pytest.fixture
def folder(patterns):
    return patterns(PATTERN) / PATTERN


@pytest.fixture
def quick(monkeypatch):
    """Fail a test whose time shows quadratic work. Each test has its own work limit."""
    monkeypatch.setattr(metaschema, "_work", metaschema._Work())
    began = time.process_time()
    yield
    middle = time.process_time()
    sum(number % 7 for number in range(2_000_000))
    assert middle - began < 80 * (time.process_time() - middle)


def faults(folder):
    return [problems.line(problem) for problem in library.load([str(folder)]).problems]


def test_open_regions_are_not_searched_for_each_line(quick):
    text = "# region b\n" * 40_000 + "\n" * 450_000 + "# endregion\n" * 100
    problems_ = []
    examples.region(examples.Source(text, "vulnerable.py"), "example", problems_)

    assert [problem.rule for problem in problems_] == ["region_not_closed"]


def test_suggestions_for_many_unknown_words_are_limited(quick):
    generator = random.Random(1)
    known = ["a" + "".join(generator.choices("abcdefg", k=90)) for _ in range(900)]
    for _ in range(700):
        word = "".join(generator.choices("abcdefg", k=90))
        assert metaschema.near(word, known)["known"].endswith(", …")


@pytest.mark.parametrize("size", [1001, 16_000])
def test_no_suggestions_from_a_long_list(size):
    known = [f"name_{number:05d}" for number in range(size)]

    assert metaschema.near("name_0000", known) == {"nearest": "", "known": ", ".join([*known[:12], "…"])}


def test_suggestions_from_a_list_of_usual_length():
    assert metaschema.near("naem_0500", [f"name_{number:04d}" for number in range(900)])["nearest"] == "name_0500"


def test_many_similar_questions_are_compared_in_time(tmp_path, quick):
    draw = random.Random(1)
    words = [f"word{number}" for number in range(300)]
    lines = [f'  - {{context: "{" ".join(draw.choices(words, k=30))}", kind: task, author: me}}\n' for _ in range(500)]
    (tmp_path / "_questions").mkdir()
    (tmp_path / "_questions" / "negatives.yaml").write_text(f"kind: questions\nquestions:\n{''.join(lines)}{lines[0]}")

    assert [problem.rule for problem in questions.review(questions.by_file([str(tmp_path)]), ())] == [
        "duplicate_question"
    ]


def test_a_file_of_many_mitigations_is_reported_once(folder):
    path = folder / "pattern.yaml"
    text = path.read_text()
    extra = "".join(
        f"  - {{id: MIT-ACME-AUTH-001{letter}, name: x, description: y, effectiveness: high, "
        "implementation_effort: low, tradeoffs: [x], example: secure.py}\n"
        for letter in "efghijklm"
    )
    path.write_text(text.replace("\nmitigations:\n", f"\nmitigations:\n{extra}"))
    with open(folder / "secure.py", "a") as file:
        file.write("#\x01\n" * 300)

    lines = faults(folder.parent)

    assert len([line for line in lines if "Hidden or control character U+0001" in line]) == 20
    assert [line.split(": ", 1)[1] for line in lines if "280 more" in line] == [
        "This line and others contain 280 more hidden characters. Delete those too."
    ]


def test_an_encoding_comment_has_no_effect(folder):
    path = folder / "vulnerable.py"
    path.write_text("# coding: nonsense\n" + path.read_text())
    (pattern,) = library.load([str(folder)]).patterns
    provenance.record({pattern["id"]: (str(folder), {"sha256": "0" * 64})}, "2026-01-02", "1.0")

    assert provenance.status(str(folder), pattern) == "changed"


def test_an_integer_that_python_cannot_write_is_reported():
    problems_ = []
    examples.parse(examples.Source(f"x = 1\ny = 0x{'f' * 6000}\n", "proof.py"), problems_)

    assert [(problem.rule, problem.line, problem.column) for problem in problems_] == [("not_python", 2, 5)]


def test_a_line_feed_cannot_forge_a_line(folder):
    problem = Problem("nothing_found", "a\n1 pattern, no problems.")

    assert "\n" not in problems.line(problem)
