"""Transcript files: search, validation, and permitted paths."""

import json
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
    """Return the problems of a transcript with additional lines, and of a configuration in its folder."""

    def check(more, config=""):
        path = write(tmp_path / "mine" / "one.yaml", TRANSCRIPT.replace("opening:", f"{more}opening:"))
        write(tmp_path / "mine" / "config.yaml", f"kind: config\n{config}")
        try:
            transcript.read(str(path))
        except DocumentError as error:
            return [problems.line(each).replace(f"{tmp_path}{os.sep}", "") for each in error.problems]
        return []

    return check


def test_parent_folders_do_not_matter(tmp_path):
    home = tmp_path / "openings" / "fixtures" / "requirements.yaml" / "conformance"
    one, other = write(home / "a" / "one.yaml"), write(home / "requirements.yaml.d" / "other.yaml")
    for beside in ("openings/x.yaml", "a/fixtures/x.yaml", "x.txt"):
        write(home / beside)

    assert transcript.find(str(home)) == [str(one), str(other)]


def test_other_files_of_a_folder_are_skipped(tmp_path):
    for other in ("kind: opening\n", "a: 1\n", "- kind: transcript\n", ""):
        write(tmp_path / f"other{len(other)}.yaml", other)
    broken = write(tmp_path / "broken.transcript.yaml", "kind: [")
    as_json = write(tmp_path / "json.yaml", '{"kind": "transcript"}')

    assert transcript.find(str(tmp_path)) == [str(broken), str(as_json)]


def test_folders_with_a_similar_name_are_not_skipped(tmp_path):
    file = write(tmp_path / "openings-of-mine" / "my-openings.yaml")

    assert transcript.find(str(tmp_path)) == [str(file)]


@pytest.mark.parametrize(
    ("name", "there"),
    [("{0}", True), ("{0}.inner", True), ("{0}.none", False), ("{0}.inner.none", False), ("no_{0}", False), ("os.path", False), ("sys", True), ("xml.dom", True)],
)  # fmt: skip
def test_missing_modules_are_detected_without_an_import(tmp_path, monkeypatch, name, there):
    package = "package_that_tells"
    write(tmp_path / package / "__init__.py", "raise SystemExit('imported')")
    write(tmp_path / package / "inner.py", "raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    name = name.format(package)
    value = transcript.Transcript("x.yaml", {"needs": [name]})

    assert value.missing_modules == ([] if there else [name])
    assert package not in sys.modules


@pytest.mark.parametrize("name", ["", ".a", "a..b", "a/b", "a b"])
def test_an_invalid_module_name_is_reported(complaints, name):
    assert [each.startswith("mine/one.yaml:5:9: needs") for each in complaints(f'needs: ["{name}"]\n')] == [True]


def test_the_requirement_is_optional(complaints):
    assert complaints("") == complaints("requirement: tools.unknown\n") == []


@pytest.mark.parametrize("name", ["../openings/handshake", "/etc/passwd", "nope"])
def test_an_unknown_opening_is_reported(tmp_path, name):
    path = write(tmp_path / "one.yaml", TRANSCRIPT.replace("opening: none", f"opening: {name}"))
    with pytest.raises(DocumentError) as raised:
        transcript.read(str(path))

    assert [each.rule for each in raised.value.problems] == ["unknown_name"]


# --- Paths outside of the transcript's folder


def test_a_configuration_in_the_same_folder_is_accepted(complaints, tmp_path):
    (tmp_path / "mine" / "docs").mkdir(parents=True)

    assert complaints("config: config.yaml\n", "providers: {files: {roots: {docs: docs}}}\n") == []


def test_a_configuration_in_another_folder_is_rejected(complaints, tmp_path):
    write(tmp_path / "config.yaml", "kind: config\n")
    (tmp_path / "mine").mkdir()
    os.symlink(tmp_path / "config.yaml", tmp_path / "mine" / "link.yaml")

    for named in ("../config.yaml", "link.yaml", str(tmp_path / "config.yaml")):
        (message,) = complaints(f"config: {named}\n")
        assert message.startswith("mine/one.yaml:5:9: ")
        assert "is outside mine, the folder of this transcript" in message


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
def test_a_configuration_with_a_path_to_another_folder_is_rejected(complaints, tmp_path, setting):
    (tmp_path / "mine").mkdir()
    os.symlink("/etc", tmp_path / "mine" / "link")
    (message,) = complaints("config: config.yaml\n", f"{setting}\n")

    assert message.startswith("mine/config.yaml:2:")
    assert "is outside mine, the folder of this transcript" in message and "Move it into that folder." in message


def test_packaged_configurations_are_accepted():
    transcripts = [transcript.read(path) for path in transcript.find(os.path.join(paths.CONFORMANCE, "sysmcp"))]

    assert any(each.config for each in transcripts)


def test_titles_of_packaged_transcripts_state_facts():
    for path in transcript.find(paths.CONFORMANCE):
        value = transcript.read(path).value
        texts = [value["title"], *(turn.get("about", "") for turn in value["exchanges"])]
        assert not any(re.search("[Ss]hould|[Tt]est that", text) for text in texts), path


def test_titles_of_other_transcripts_are_not_checked(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(TRANSCRIPT.replace("A made-up conversation", "This should work"), encoding="utf-8")

    assert transcript.read(str(file)).value["title"] == "This should work"


@pytest.mark.parametrize(
    ("send", "expect", "column", "sentence"),
    [
        ("{}", "{result: {$any: objct}}", 30, "There is no JSON type 'objct'. Did you mean 'object'?"),
        ("{}", "{$anny: string}", 15, "There is no matcher '$anny'. Did you mean '$any'?"),
        ("{}", "{$any: string, a: 1}", 29, "There is no matcher 'a'."),
        ("{}", "{$any: string, $re: a}", 14, "$any and $re cannot be used like this."),
        ("{}", "{$subset: []}", 14, "$subset cannot be used like this."),
        ("{}", "{$ignore: false}", 24, "$ignore cannot be used like this."),
        ("{}", "{$ref: cursor}", 21, "Nothing is captured as 'cursor' before this place."),
        ("{}", "{$capture: '1'}", 25, "'1' is not a name for a captured value."),
        ("{}", "{$json: {a: {$any: x}}}", 33, "There is no JSON type 'x'."),
        ("{}", "{$var: version}", 21, "There is no variable 'version'. Did you mean"),
        ("{a: {$ref: cursor}}", "{}", 22, "Nothing is captured as 'cursor' before this place."),
        ("{a: {$any: string}}", "{}", 16, "There is no matcher '$any'."),
        pytest.param(
            "{}", "{$re: '('}", 20, "'(' is not a valid RE2 regular expression", marks=pytest.mark.needs("re2")
        ),
    ],
)
def test_a_wrong_matcher_is_reported(tmp_path, send, expect, column, sentence):
    file = tmp_path / "mine.yaml"
    head, _, _ = TRANSCRIPT.partition("  - send")
    file.write_text(f"{head}  - send: {send}\n    expect: [{expect}]\n", encoding="utf-8")

    with pytest.raises(DocumentError) as raised:
        transcript.read(str(file))
    (problem,) = raised.value.problems
    assert problems.sentence(problem).startswith(sentence)
    assert problem.column == column


def test_what_an_earlier_message_captures_can_be_sent_and_expected(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        TRANSCRIPT.replace("[]", "[{result: {nextCursor: {$capture: cursor}}}]")
        + "  - send: {params: {cursor: {$ref: cursor}}, schema: {$ref: '#/$defs/a'}, $gt: {$literal: {$ref: a}}}\n"
        + "    expect: [{cursor: {$ref: cursor}}]\n",
        encoding="utf-8",
    )
    _, second = transcript.read(str(file)).turns("2025-11-25")

    assert second.bound({"cursor": {"$ref": "x"}}) == (
        b'{"params":{"cursor":{"$ref":"x"}},"schema":{"$ref":"#/$defs/a"},"$gt":{"$ref":"a"}}'
    )


@pytest.mark.parametrize(
    ("value", "writable"),
    [("[" * 58 + "]" * 58, True), ("[" * 60 + "]" * 60, False), ("[" * 900 + "]" * 900, False), ("1e999", False)],
)
def test_only_values_that_can_be_read_again_are_written(tmp_path, value, writable):
    message = json.loads(value)

    assert transcript.is_writable([message]) is writable
    if writable:
        file = tmp_path / "mine.yaml"
        file.write_text(TRANSCRIPT)
        transcript.rewrite(transcript.read(str(file)), {1: {"2025-11-25": [message]}})
        assert transcript.read(str(file)).value["exchanges"][0]["expect"] == [message]
