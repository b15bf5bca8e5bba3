"""Files of a pattern that are made to keep a start waiting, to fill the memory, or to look like another file."""

import random
import shutil
import time

import pytest

from tmkb.authoring import skeleton
from tmkb.errors import Problem
from tmkb.knowledge import examples, library, provenance
from tmkb.knowledge.retrieval import lexicon
from tmkb.schema import metaschema, problems

PATTERN = "acme_auth_001"


@pytest.fixture
def folder(patterns):
    return patterns(PATTERN) / PATTERN


@pytest.fixture
def quick(monkeypatch):
    """Hold a test to a time that only quadratic work exceeds; what it uses up is not missing in the next."""
    monkeypatch.setattr(metaschema, "_work", metaschema._Work())
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 10


def faults(folder):
    return [problems.line(problem) for problem in library.load([str(folder)]).problems]


def test_open_regions_cost_no_search_for_each_line(quick):
    text = "# region b\n" * 40_000 + "\n" * 450_000 + "# endregion\n" * 100
    found = []
    examples.region(examples.Source(text, "vulnerable.py"), "example", found)

    assert [problem.rule for problem in found] == ["region_not_closed"]


def test_suggestions_for_many_wrong_words_end(quick):
    generator = random.Random(1)
    known = ["a" + "".join(generator.choices("abcdefg", k=90)) for _ in range(900)]
    for _ in range(700):
        word = "".join(generator.choices("abcdefg", k=90))
        assert metaschema.near(word, known)["known"].endswith(", …")


@pytest.mark.parametrize("size", [1001, 16_000])
def test_a_word_is_not_compared_with_a_long_list(size):
    known = [f"name_{number:05d}" for number in range(size)]

    assert metaschema.near("name_0000", known) == {"nearest": "", "known": ", ".join([*known[:12], "…"])}


def test_a_word_is_compared_with_a_list_of_usual_length():
    assert metaschema.near("naem_0500", [f"name_{number:04d}" for number in range(900)])["nearest"] == "name_0500"


def test_many_unknown_concepts_are_reported_in_time(tmp_path, quick):
    folder = shutil.copytree(lexicon.packaged(), tmp_path / "_lexicon")
    names = "".join(f"  ABCDEFGHIJKLMNOPQRSTU{n:05d}: [w]\n" for n in range(8000))
    (folder / "concepts.yaml").write_text(f"kind: concepts\nconcepts:\n{names}")
    cues = "".join(f"  A{n}-001: {{XBCDEFGHIJKLMNOPQRSTU{n:05d}: 1}}\n" for n in range(8000))
    (folder / "cues.yaml").write_text(f"kind: cues\npatterns:\n{cues}")

    assert len(lexicon.review(str(folder))) >= 8000


def test_an_expression_nested_too_deep_is_reported(tmp_path):
    folder = shutil.copytree(lexicon.packaged(), tmp_path / "_lexicon")
    nested = "(" * 20_000 + ")" * 20_000
    (folder / "code.yaml").write_text(
        f'kind: code\nboilerplate: []\nshapes: {{a: {{needs: a, regex: "{nested}"}}}}\n', encoding="utf-8"
    )

    assert "bad_expression" in [problem.rule for problem in lexicon.review(str(folder))]


def test_a_file_that_many_mitigations_name_is_read_and_reported_once(folder):
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

    found = faults(folder.parent)

    assert len([line for line in found if "Hidden or control character U+0001" in line]) == 20
    assert [line.split(": ", 1)[1] for line in found if "280 more" in line] == [
        "This line and others contain 280 more hidden characters. Delete those too."
    ]


def test_a_comment_that_names_an_encoding_changes_nothing(folder):
    path = folder / "vulnerable.py"
    path.write_text("# coding: nonsense\n" + path.read_text())
    (pattern,) = library.load([str(folder)]).patterns
    provenance.record({pattern["id"]: (str(folder), "0" * 64)}, "2026-01-02", "1.0")

    assert provenance.status(str(folder), pattern) == "changed"


def test_an_integer_that_python_does_not_write_is_reported():
    found = []
    examples.parsed(examples.Source(f"x = 1\ny = 0x{'f' * 6000}\n", "proof.py"), found)

    assert [(problem.rule, problem.line, problem.column) for problem in found] == [("not_python", 2, 5)]


def test_calls_that_repeat_their_argument_do_not_multiply(folder, quick):
    calls = "".join(f"def f{n}(x):\n    return f{n + 1}(({','.join(['x'] * 30)}))\n\n\n" for n in range(1, 8))
    end = "def f8(x):\n    return outcome(gained=x, refused=x)\n\n\ndef legitimate_a(e):\n    'x'\n"
    proof = f"from tmkb.proof import outcome\n\n\ndef exploit_a(example):\n    'x'\n    return f1(1)\n\n\n{calls}{end}"
    (folder / "proof.py").write_text(proof)
    pattern = library.load([library.PACKAGED]).patterns[0]

    assert len(skeleton.tests(str(folder), pattern)) < 100_000


def test_a_line_feed_forges_no_line(folder):
    problem = Problem("nothing_found", "a\n1 pattern, no problems.")

    assert "\n" not in problems.line(problem)
