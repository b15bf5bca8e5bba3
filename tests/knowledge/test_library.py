"""Folders of patterns: what can be served, and what is said of the rest."""

import shutil

import pytest

from tmkb.knowledge import library, quality
from tmkb.schema import problems


@pytest.fixture
def folder(patterns):
    return patterns("acme_auth_001")


@pytest.fixture
def said(folder):
    """What is said about the pattern when ``old`` is ``new`` in one of its files."""

    def change(file, old, new):
        path = folder / "acme_auth_001" / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        found = library.load([str(folder)])
        known = {"TMKB-AUTH-001", "TMKB-AUTH-024", "TMKB-AUTH-026"}
        every = found.problems + [p for each in found.found for p in quality.review(each, known)]
        return [problems.line(p).removeprefix(f"{folder}/acme_auth_001/") for p in every]

    return change


def test_the_packaged_patterns_can_all_be_served(ids):
    found = library.load([library.PACKAGED])

    assert found.problems == []
    assert [p["id"] for p in found.patterns] == ids


def test_a_pattern_has_what_is_shown_of_its_code(folder):
    (pattern,) = library.load([str(folder)]).patterns

    assert pattern["template"].startswith("@shared_task\ndef publish_document(document_id, actor_id):")
    assert pattern["vulnerable"].startswith('bp = Blueprint("documents", __name__)')
    assert "region" not in pattern["vulnerable"] + pattern["template"]
    assert pattern["steps"][1].startswith("Bob has a document published and is removed from Acme")


def test_the_folder_may_be_that_of_one_pattern(folder):
    assert len(library.load([str(folder / "acme_auth_001")]).patterns) == 1


def test_a_pattern_without_code_can_be_served(folder):
    path = folder / "acme_auth_001" / "pattern.yaml"
    text = (
        path.read_text()
        .replace("tier: A", "tier: B")
        .replace("code: {vulnerable: vulnerable.py, proof: proof.py}\n", "")
    )
    text = text.replace("    example: secure.py\n", "").replace(
        "    example: secure_signed.py\n    leaves: [removed_member, deleted_account]\n", ""
    )
    path.write_text(text)
    (pattern,) = library.load([str(folder)]).patterns

    assert "template" not in pattern and pattern["steps"] == []


def test_of_two_with_one_id_the_later_is_left_out(patterns, tmp_path):
    folder = patterns("acme_auth_001")
    again = shutil.copytree(folder, tmp_path / "again")
    found = library.load([str(folder), str(again)])

    assert len(found.patterns) == 1
    (said,) = [problems.line(problem) for problem in found.problems]
    assert said == (
        f"{again}/acme_auth_001/pattern.yaml:3:5: {folder}/acme_auth_001/pattern.yaml already has the id ACME-AUTH-001."
        " This pattern is not loaded."
    )


def test_a_folder_that_cannot_be_looked_into_is_told(folder, monkeypatch):
    def closed(folder):
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr("os.listdir", closed)
    found = library.load([str(folder)])

    assert [problems.line(p) for p in found.problems] == [f"{folder}:1:1: Cannot list {folder}: Permission denied."]


def test_folders_without_patterns_are_told(tmp_path):
    found = library.load([str(tmp_path), "no/such"])

    assert (found.empty, found.missing, found.patterns) == ([str(tmp_path)], ["no/such"], [])


@pytest.mark.parametrize(
    ("file", "old", "new", "at", "sentence"),
    [
        ("pattern.yaml", "severity: high", "severity: huge", "huge", "severity cannot be 'huge'. Allowed: critical, high, medium, low."),
        ("pattern.yaml", "principles:", "principle:", "kind:", "Key 'principles' is missing in the file."),
        ("pattern.yaml", "example: secure.py", "example: ../secure.py", "../secure.py", "mitigations[0].example is not valid: '../secure.py' does not match"),
        ("pattern.yaml", "example: secure.py", "example: secured.py", "secured.py", "This folder has no .py file secured.py."),
        ("pattern.yaml", "leaves: [removed_member,", "leaves: [removed_members,", "removed_members", "The proof has no function exploit_removed_members. Did you mean removed_member?"),
        ("pattern.yaml", "    example: secure.py", "    example: secure.py\n    leaves: [planted_job]", "planted_job", "The first mitigation with an example must stop every exploit."),
        ("pattern.yaml", "TMKB-AUTH-024", "TMKB-AUTH-126", "TMKB-AUTH-126", "There is no pattern TMKB-AUTH-126. Did you mean TMKB-AUTH-026?"),
        ("pattern.yaml", "id: ACME-AUTH-001", "id: ACME-AUTH-002", "ACME-AUTH-002", "The folder of ACME-AUTH-002 must be named acme_auth_002, not acme_auth_001."),
        ("pattern.yaml", "  check: Does", "  check: Does " + "really " * 80, "agent_summary:", "agent_summary has"),
        ("secure.py", "# region template", "# region templat", None, "# region template occurs 0 times; it must occur once."),
        ("secure.py", '    document.state = "published"', '    document.state = "published"  #' + "x" * 200, None, "the region template of secure.py has"),
        ("vulnerable.py", "def publish(", "def publish((", "def publish((", "Not valid Python:"),
        ("proof.py", "def exploit_", "def attempt_", None, "The proof has no function exploit_… with a docstring."),
    ],
)  # fmt: skip
def test_mistakes_are_told_at_their_place(folder, said, file, old, new, at, sentence):
    place, told = said(file, old, new)[0].split(": ", 1)
    name, line, _ = place.split(":")

    assert told.startswith(sentence)
    if at is not None:
        assert (name, at in (folder / "acme_auth_001" / file).read_text().splitlines()[int(line) - 1]) == (file, True)


def test_code_without_a_secure_example_is_told(folder):
    path = folder / "acme_auth_001" / "pattern.yaml"
    text = path.read_text().replace("    example: secure.py\n", "")
    path.write_text(text.replace("    example: secure_signed.py\n    leaves: [removed_member, deleted_account]\n", ""))

    assert [p.rule for p in library.load([str(folder)]).problems] == ["no_secure_example"]


def test_folders_that_begin_with_an_underscore_are_passed_over(folder):
    shutil.copytree(folder / "acme_auth_001", folder / "_draft")

    assert [p["id"] for p in library.load([str(folder)]).patterns] == ["ACME-AUTH-001"]
    assert library.load([str(folder)]).problems == []
    assert len(library.load([str(folder / "_draft")]).patterns) == 1
