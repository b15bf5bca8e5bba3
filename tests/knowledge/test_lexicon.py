"""The lexicon: what is refused, and where it is said."""

import shutil

import pytest

from tmkb.knowledge.retrieval import lexicon
from tmkb.schema import problems


@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        ("cues", "    JOB: 5\n", "    JOBB: 5\n", "There is no concept 'JOBB'. Did you mean 'JOB'?"),
        (
            "cues",
            "    JOB: 5\n",
            '    "#enqueue_di": 5\n',
            "There is no shape '#enqueue_di'. Did you mean '#enqueue_id'?",
        ),
        ("cues", "    JOB: 5\n", "    JOB: five\n", "must be a number"),
        ("scope", "[PERSON, ", "[PERSONS, ", "There is no concept 'PERSONS'"),
        ("code", 'regex: "', 'regex: "(', "Invalid regular expression"),
        ("concepts", "kind: concepts", "kind: cues", "kind cannot be 'cues'"),
    ],
)
def test_a_fault_is_told_with_its_place(tmp_path, file, before, after, said):
    folder = shutil.copytree(lexicon.packaged(), tmp_path / "_lexicon")
    path = folder / f"{file}.yaml"
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), encoding="utf-8")

    found = lexicon.review(str(folder))

    assert any(said in problems.line(problem) and f"{file}.yaml:" in problems.line(problem) for problem in found)


def test_a_broken_file_counts_as_empty(tmp_path):
    folder = shutil.copytree(lexicon.packaged(), tmp_path / "_lexicon")
    (folder / "cues.yaml").write_text("kind: [", encoding="utf-8")

    found = lexicon.read(str(folder))

    assert found.values["cues"] == {}
    assert found.values["concepts"]
