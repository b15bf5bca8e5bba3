"""Files in `tests/data/mistakes`: the first line has the position of the problem, the second the sentence."""

import glob
import json
import os
import re

import pytest

from tests.support.tiers import sample
from tmkb.cli import main
from tmkb.errors import Problem
from tmkb.schema import problems

FILES = sorted(glob.glob(os.path.join(os.path.dirname(__file__), "..", "data", "mistakes", "*.yaml")))
TOLD = re.compile(r"# (\d+):(\d+) (\w+): (.+)")


def test_a_long_value_of_a_file_is_cut():
    problem = Problem("unknown_key", "a.yaml", 1, 2, key="k" * 200, place="the file", nearest="n" * 200)

    assert problems.line(problem) == (f"a.yaml:1:2: Unknown key '{'k' * 80}…' in the file. Did you mean '{'n' * 200}'?")


@pytest.mark.parametrize("file", sample(FILES, 20), ids=lambda file: os.path.basename(file)[:-5])
def test_a_problem_has_its_position_and_remedy(file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with open(file, encoding="utf-8") as source:
        text = source.read()
    first, second = text.splitlines()[:2]
    place = tmp_path / "mine" / first.removeprefix("# ")
    place.parent.mkdir(parents=True)
    place.write_text(text, encoding="utf-8")
    line, column, rule, sentence = TOLD.fullmatch(second).groups()

    status = main.main(["schema", "check", "mine", "--json"])
    (problem,) = json.loads(capsys.readouterr().out)["problems"]

    assert status == 1
    assert problem == {
        "file": os.path.join("mine", first.removeprefix("# ")),
        "line": int(line),
        "column": int(column),
        "rule": rule,
        "sentence": sentence,
        "remedy": problem["remedy"],
    }
    assert sentence.endswith(problem["remedy"]) if problem["remedy"] else rule == "missing_key"
