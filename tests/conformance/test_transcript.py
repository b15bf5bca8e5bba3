"""Transcripts as files: which are found, what they may name, and that reading one runs nothing."""

import os
import re
import sys

import pytest

from tmkb.conformance import transcript
from tmkb.errors import DocumentError
from tmkb.schema import paths, problems

TRANSCRIPT = """\
kind: transcript
title: A made-up conversation
server: sysmcp
revisions: ["2025-11-25"]
opening: none
exchanges:
  - send: {jsonrpc: "2.0", id: 1, method: ping}
    expect: []
"""


def write(path, text=TRANSCRIPT):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def complaints(tmp_path):
    """What is wrong with a transcript in `tmp_path/mine` that has these lines too, beside this configuration."""

    def check(more, config=""):
        path = write(tmp_path / "mine" / "one.yaml", TRANSCRIPT.replace("opening:", f"{more}opening:"))
        write(tmp_path / "mine" / "config.yaml", f"kind: config\n{config}")
        try:
            transcript.read(str(path))
        except DocumentError as error:
            return [problems.line(each).replace(f"{tmp_path}{os.sep}", "") for each in error.problems]
        return []

    return check


def test_folders_above_do_not_matter(tmp_path):
    home = tmp_path / "openings" / "fixtures" / "requirements.yaml" / "conformance"
    one, other = write(home / "a" / "one.yaml"), write(home / "requirements.yaml.d" / "other.yaml")
    for beside in ("openings/x.yaml", "a/fixtures/x.yaml", "requirements.yaml", "x.schema.yaml", "x.txt"):
        write(home / beside)

    assert transcript.find(str(home)) == [str(one), str(other)]


def test_a_name_that_only_begins_like_another_folder_is_found(tmp_path):
    file = write(tmp_path / "openings-of-mine" / "my-openings.yaml")

    assert transcript.find(str(tmp_path)) == [str(file)]


@pytest.mark.parametrize(
    ("name", "there"),
    [("{0}", True), ("{0}.inner", True), ("{0}.none", False), ("{0}.inner.none", False), ("no_{0}", False), ("os.path", False), ("sys", True), ("xml.dom", True)],
)  # fmt: skip
def test_a_module_that_is_needed_is_not_imported(tmp_path, monkeypatch, name, there):
    package = "package_that_tells"
    write(tmp_path / package / "__init__.py", "raise SystemExit('imported')")
    write(tmp_path / package / "inner.py", "raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    name = name.format(package)
    value = transcript.Transcript("x.yaml", {"needs": [name]})

    assert value.lacking == ([] if there else [name])
    assert package not in sys.modules


@pytest.mark.parametrize("name", ["", ".a", "a..b", "a/b", "a b"])
def test_what_is_no_module_is_refused(complaints, name):
    assert [each.startswith("mine/one.yaml:5:9: needs") for each in complaints(f'needs: ["{name}"]\n')] == [True]


def test_requirement_is_not_mandatory(complaints):
    assert complaints("") == complaints("requirement: tools.unknown\n") == []


@pytest.mark.parametrize("name", ["../openings/handshake", "/etc/passwd", "nope"])
def test_an_opening_is_one_of_those_in_its_folders(tmp_path, name):
    path = write(tmp_path / "one.yaml", TRANSCRIPT.replace("opening: none", f"opening: {name}"))
    with pytest.raises(DocumentError) as raised:
        transcript.read(str(path))

    assert [each.rule for each in raised.value.problems] == ["unknown_name"]


# --- Paths outside of the transcript's folder


def test_a_configuration_beside_the_transcript_is_fine(complaints, tmp_path):
    (tmp_path / "mine" / "docs").mkdir(parents=True)

    assert complaints("config: config.yaml\n", "providers: {files: {roots: {docs: docs}}}\n") == []


def test_a_configuration_elsewhere_is_refused(complaints, tmp_path):
    write(tmp_path / "config.yaml", "kind: config\n")
    (tmp_path / "mine").mkdir()
    os.symlink(tmp_path / "config.yaml", tmp_path / "mine" / "link.yaml")

    for named in ("../config.yaml", "link.yaml", str(tmp_path / "config.yaml")):
        (said,) = complaints(f"config: {named}\n")
        assert said.startswith("mine/one.yaml:5:9: ")
        assert "is outside mine, the folder of this transcript" in said


@pytest.mark.parametrize(
    "setting",
    [
        "providers: {files: {roots: {etc: /etc}}}",
        "providers: {files: {roots: {up: ..}}}",
        "providers: {files: {roots: {link: link}}}",
        "providers: {files: {audit: /tmp/audit}}",
        "providers: {hives: {mounts: {'HKLM\\SAM': /etc/passwd}}}",
        "providers: {hives: {backups: {folder: /tmp, keep: 1}}}",
        "providers: {eventlog: {sources: [{kind: textlog, files: {all: /var/log/syslog}}]}}",
        "services: /etc",
    ],
)
def test_a_configuration_that_names_what_lies_elsewhere_is_refused(complaints, tmp_path, setting):
    (tmp_path / "mine").mkdir()
    os.symlink("/etc", tmp_path / "mine" / "link")
    (said,) = complaints("config: config.yaml\n", f"{setting}\n")

    assert said.startswith("mine/config.yaml:2:")
    assert "is outside mine, the folder of this transcript" in said and "Move it into that folder." in said


def test_our_own_configurations_obey_that():
    found = [transcript.read(path) for path in transcript.find(os.path.join(paths.CONFORMANCE, "sysmcp"))]

    assert any(each.config for each in found)


def test_titles_of_ours_say_what_is():
    for path in transcript.find(paths.CONFORMANCE):
        value = transcript.read(path).value
        texts = [value["title"], *(exchange.get("about", "") for exchange in value["exchanges"])]
        assert not any(re.search("[Ss]hould|[Tt]est that", text) for text in texts), path


def test_the_titles_of_others_are_free(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(TRANSCRIPT.replace("A made-up conversation", "This should work"), encoding="utf-8")

    assert transcript.read(str(file)).value["title"] == "This should work"


def test_a_placeholder_of_no_json_type_is_reported_when_read(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(TRANSCRIPT.replace("[]", "[{result: {$any: objct}}]"), encoding="utf-8")

    with pytest.raises(DocumentError) as raised:
        transcript.read(str(file))
    (problem,) = raised.value.problems
    assert problems.sentence(problem) == "There is no JSON type 'objct'. Did you mean 'object'?"
    assert problem.line == 8
