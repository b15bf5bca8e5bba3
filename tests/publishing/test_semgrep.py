"""The rules that `tmkb export semgrep` writes. `tests/semgrep/run.py` runs semgrep with them."""

import shutil

import pytest

from tmkb.cli import loader, main
from tmkb.errors import SpecError
from tmkb.knowledge import library
from tmkb.publishing import semgrep
from tmkb.schema import emission, paths, problems, reader


@pytest.fixture(scope="module")
def packaged():
    return loader.patterns_by_id(["packaged"])


@pytest.fixture
def pattern(tmp_path):
    """Write a semgrep.yaml beside a copy of a pattern without one; gives the sentences of its problems."""
    folder = tmp_path / "patterns" / "tmkb_auth_007"
    shutil.copytree(f"{paths.PATTERNS}/tmkb_auth_007", folder)

    def write(text):
        (folder / semgrep.NAME).write_text(text)
        return [problems.sentence(each) for each in semgrep.read(str(folder))[1]]

    write.folder = folder
    return write


RULE = """\
kind: semgrep
rules:
  lookup:
    languages: [python]
    technology: [django]
    confidence: LOW
    match: {pattern: $MODEL.objects.get(...)}
"""


def test_a_rule_has_the_texts_of_its_pattern(packaged):
    folder, whole = packaged["TMKB-AUTH-007"]
    files = semgrep.files({"TMKB-AUTH-007": (folder, whole)})
    rules = reader.parse(files["TMKB-AUTH-007.yaml"], "").mapping()["rules"]
    python = next(rule for rule in rules if rule["languages"] == ["python"])
    script = next(rule for rule in rules if "typescript" in rule["languages"])
    summary = whole["agent_summary"]

    assert python["message"] == f"{summary['threat']} {summary['fix']} See `tmkb get TMKB-AUTH-007`."
    assert script["message"] == f"{summary['threat']} {summary['principle']} See `tmkb get TMKB-AUTH-007`."
    assert python["id"].startswith("tmkb-auth-007-")
    assert python["severity"] == "HIGH"
    assert python["metadata"]["category"] == "security"
    assert python["metadata"]["cwe"][0] == "CWE-639: Authorization Bypass Through User-Controlled Key"
    assert python["metadata"]["owasp"][0].startswith("API1:2023 - ")
    assert python["metadata"]["references"] == whole["references"]["sources"]
    assert python["metadata"]["tmkb"]["id"] == "TMKB-AUTH-007"


def test_every_packaged_rule_is_written_as_it_is_in_its_file(packaged):
    files = semgrep.files(packaged)
    rules = {rule["id"]: rule for text in files.values() for rule in reader.parse(text, "").mapping()["rules"]}
    own = {
        semgrep.rule_id(id_, name): rule
        for id_, (folder, _) in packaged.items()
        for name, rule in semgrep.read(folder)[0].rules.items()
    }

    assert rules.keys() == own.keys()
    for id_, rule in own.items():
        assert {key: rules[id_][key] for key in rule["match"]} == rule["match"]
        assert rules[id_]["metadata"]["confidence"] == rule["confidence"]


def test_expressions_of_several_lines_are_written_as_blocks():
    value = {"patterns": [{"pattern": "def $F():\n    ..."}, {"pattern-not": "x\n\ny\n"}, {"pattern": "one"}]}
    text = emission.lines(value, 0)

    assert (
        text
        == "patterns:\n  - pattern: |-\n      def $F():\n          ...\n  - pattern-not: |\n      x\n\n      y\n  - {pattern: one}"
    )
    assert reader.parse(text, "").value == value


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("[python]", "[ruby]", "languages"),
        ("confidence: LOW", "confidence: SURE", "confidence"),
        ("pattern: $", "patern: $", "patern"),
        ("rules:", "none: It needs meaning.\nrules:", "none"),
        ("[python]", "[typescript]", "examples"),
        ("LOW", "LOW\n    examples: {djnago: {vulnerable: a, secure: b}}", "Did you mean 'django'?"),
    ],
)
def test_problems_of_a_file_are_reported(pattern, old, new, sentence):
    assert pattern(RULE) == []

    found = pattern(RULE.replace(old, new))
    assert any(sentence in each for each in found)
    with pytest.raises(SpecError):
        semgrep.files(loader.patterns_by_id([str(pattern.folder.parent)]))


def test_a_pattern_without_a_rule_has_no_file(pattern, tmp_path, capsys):
    assert pattern("kind: semgrep\nnone: It needs meaning.\n") == []

    status = main.main(["export", "semgrep", "-o", str(tmp_path / "new"), "--patterns", str(pattern.folder.parent)])

    assert (status, capsys.readouterr().err) == (1, "tmkb: There is nothing to export for semgrep.\n")
    assert not (tmp_path / "new").exists()


def test_packaged_patterns_have_valid_files():
    assert [problem for each in library.load(None).folders for problem in semgrep.read(each.path)[1]] == []
