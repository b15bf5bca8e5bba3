"""Loading folders of patterns, and the problems of patterns that cannot be served."""

import shutil

import pytest

from tmkb.knowledge import library, pattern
from tmkb.schema import problems


@pytest.fixture
def folder(patterns):
    return patterns("acme_auth_001")


@pytest.fixture
def problems_with(folder):
    """Replace ``old`` by ``new`` in one file of the pattern, and return the problems."""

    def replace(file, old, new):
        path = folder / "acme_auth_001" / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        loaded = library.load([str(folder)])
        known = {"TMKB-AUTH-001", "TMKB-AUTH-024", "TMKB-AUTH-026"}
        every = loaded.problems + [p for each in loaded.folders for p in pattern.review(each, known)]
        return [problems.line(p).removeprefix(f"{folder}/acme_auth_001/") for p in every]

    return replace


def test_all_packaged_patterns_can_be_served(ids):
    loaded = library.load([library.PACKAGED])

    assert loaded.problems == []
    assert [p["id"] for p in loaded.patterns] == ids


def test_a_pattern_contains_the_regions_of_its_code(folder):
    (pattern,) = library.load([str(folder)]).patterns

    assert pattern["template"].startswith("@shared_task\ndef publish_document(document_id, actor_id):")
    assert pattern["vulnerable"].startswith('bp = Blueprint("documents", __name__)')
    assert "region" not in pattern["vulnerable"] + pattern["template"]
    assert pattern["steps"][1].startswith("Bob has a document published and is removed from Acme")


def test_a_folder_can_be_that_of_one_pattern(folder):
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


def test_a_duplicate_id_is_left_out(patterns, tmp_path):
    folder = patterns("acme_auth_001")
    again = shutil.copytree(folder, tmp_path / "again")
    loaded = library.load([str(folder), str(again)])

    assert len(loaded.patterns) == 1
    (message,) = [problems.line(problem) for problem in loaded.problems]
    assert message == (
        f"{again}/acme_auth_001/pattern.yaml:3:5: {folder}/acme_auth_001/pattern.yaml already has the id ACME-AUTH-001."
        " This pattern is not loaded."
    )


def test_an_unreadable_folder_is_reported(folder, monkeypatch):
    def closed(folder):
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr("os.listdir", closed)
    loaded = library.load([str(folder)])

    assert [problems.line(p) for p in loaded.problems] == [f"{folder}:1:1: Cannot list {folder}: Permission denied."]


def test_missing_and_empty_folders(tmp_path):
    loaded = library.load([str(tmp_path), "no/such"])

    assert (loaded.empty, loaded.missing, loaded.patterns) == ([str(tmp_path)], ["no/such"], [])


@pytest.mark.parametrize(
    ("file", "old", "new", "at", "sentence"),
    [
        ("pattern.yaml", "severity: high", "severity: huge", "huge", "severity cannot be 'huge'. Allowed: critical, high, medium, low."),
        ("pattern.yaml", "principles:", "principle:", "principle:", "Unknown key 'principle' in the file. Did you mean 'principles'?"),
        ("pattern.yaml", "example: secure.py", "example: ../secure.py", "../secure.py", "mitigations[0].example is not valid: '../secure.py' does not match"),
        ("pattern.yaml", "example: secure.py", "example: secured.py", "secured.py", "This folder has no .py file secured.py."),
        ("pattern.yaml", "leaves: [removed_member,", "leaves: [removed_members,", "removed_members", "The proof has no function exploit_removed_members. Did you mean removed_member?"),
        ("pattern.yaml", "    example: secure.py", "    example: secure.py\n    leaves: [planted_job]", "planted_job", "The first mitigation with an example must stop every exploit."),
        ("pattern.yaml", "TMKB-AUTH-024", "TMKB-AUTH-126", "TMKB-AUTH-126", "There is no pattern TMKB-AUTH-126. Did you mean TMKB-AUTH-026?"),
        ("pattern.yaml", "id: ACME-AUTH-001", "id: ACME-AUTH-002", "ACME-AUTH-002", "The folder of ACME-AUTH-002 must be named acme_auth_002, not acme_auth_001."),
        ("pattern.yaml", "  check: Does", "  check: Does " + "really " * 80, "agent_summary:", "agent_summary has"),
        ("secure.py", "# region template", "# region templat", None, "# region template occurs 0 times; it must occur once."),
        ("secure.py", '    document.state = "published"', '    document.state = "published"  #' + "x" * 300, None, "the region template of secure.py has"),
        ("vulnerable.py", "def publish(", "def publish((", "def publish((", "Not valid Python:"),
        ("proof.py", "def exploit_", "def attempt_", None, "The proof has no function exploit_… with a docstring."),
    ],
)  # fmt: skip
def test_problems_are_reported_with_their_place(folder, problems_with, file, old, new, at, sentence):
    place, message = problems_with(file, old, new)[0].split(": ", 1)
    name, line, _ = place.split(":")

    assert message.startswith(sentence)
    if at is not None:
        assert (name, at in (folder / "acme_auth_001" / file).read_text().splitlines()[int(line) - 1]) == (file, True)


def test_code_without_a_secure_example_is_reported(folder):
    path = folder / "acme_auth_001" / "pattern.yaml"
    text = path.read_text().replace("    example: secure.py\n", "")
    path.write_text(text.replace("    example: secure_signed.py\n    leaves: [removed_member, deleted_account]\n", ""))

    assert [p.rule for p in library.load([str(folder)]).problems] == ["no_secure_example"]


def test_folders_that_begin_with_an_underscore_are_ignored(folder):
    shutil.copytree(folder / "acme_auth_001", folder / "_draft")

    assert [p["id"] for p in library.load([str(folder)]).patterns] == ["ACME-AUTH-001"]
    assert library.load([str(folder)]).problems == []
    assert len(library.load([str(folder / "_draft")]).patterns) == 1
