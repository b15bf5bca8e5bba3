"""Processes that answer requests: what they import, and what is answered when they die."""

import os

import pytest

import tmkb
from tmkb.authoring.process import DIED, Process

pytestmark = pytest.mark.process

ANSWERS_ONCE = """\
print('{"request": %s}' % input(), flush=True)
print('{"half', end="", flush=True)
"""


def test_a_process_that_dies_in_the_middle_of_a_line(tmp_path, monkeypatch):
    (tmp_path / "answers_once.py").write_text(ANSWERS_ONCE)
    monkeypatch.syspath_prepend(tmp_path)
    process = Process("answers_once")

    assert [*process.answers({"a": 1})] == [{"request": {"a": 1}}, DIED]
    assert process.ended
    assert [*process.answers({"a": 2})] == [DIED]
    process.close()


def test_a_process_runs_the_package_of_the_current_folder(tmp_path, monkeypatch):
    checkout = os.path.dirname(os.path.dirname(tmkb.__file__))
    (tmp_path / "names_path.py").write_text("import json, os\nprint(json.dumps(os.environ['PYTHONPATH']))\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(checkout)
    monkeypatch.chdir(checkout)
    process = Process("names_path")
    path, _ = process.answers({})
    process.close()

    assert checkout in path.split(os.pathsep)
