"""`tmkb new pattern` creates a valid, proven pattern and overwrites nothing."""

import datetime
import json
import os
import pty
import subprocess
import sys

import pytest

from tmkb.authoring import scaffold
from tmkb.cli import main
from tmkb.knowledge import library
from tmkb.schema import paths

pytestmark = pytest.mark.process

NAMED = ("--id", "ACME-AUTH-001", "--name", "Export Link Without Owner", "--category", "object-level")
FILES = ["app.py", "attacks.yaml", "pattern.yaml", "secure.py", "vulnerable.py", "wrong"]


@pytest.fixture
def new(capsys, monkeypatch, tmp_path):
    """Run the command in an empty folder, without a terminal; gives exit status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: SIM115

    def run(*words):
        try:
            status = main.main(["new", "pattern", *words])
        except SystemExit as exit:
            status = exit.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    yield run
    sys.stdin.close()


def pattern(folder):
    """The pattern there, which has to be one without a problem."""
    assert main.main(["validate", str(folder)]) == 0
    (found,) = library.load([str(folder)]).patterns
    return found


@pytest.mark.parametrize("tier", ["A", "B"])
def test_the_new_pattern_is_valid(new, tmp_path, tier):
    status, out, err = new(*NAMED, "--dir", "my-patterns", "--tier", tier)
    found = pattern("my-patterns")

    assert (status, err) == (0, "")
    assert out == (
        "my-patterns/acme_auth_001: app.py, attacks.yaml, pattern.yaml, secure.py, vulnerable.py, "
        "wrong/admins.py\n"
        "The pattern is valid and proven. Replace it step by step, and check it after each change:\n"
        "  tmkb validate my-patterns\n"
        "  tmkb prove ACME-AUTH-001 --patterns my-patterns\n"
        "Queries find it by its texts and by example questions. Write eight or more, one a line, and add them:\n"
        '  {"context": "what a developer is about to do", "kind": "task", "relevant": {"ACME-AUTH-001": 3}}\n'
        "  tmkb questions add questions.jsonl --author me --dir my-patterns\n"
    )
    assert sorted(os.listdir(tmp_path / "my-patterns" / "acme_auth_001")) == FILES
    assert (found["id"], found["name"], found["tier"]) == ("ACME-AUTH-001", "Export Link Without Owner", tier)
    assert (found["framework"], found["language"], found["severity"]) == ("flask", "python", "medium")
    assert [each["id"] for each in found["mitigations"]] == ["MIT-ACME-AUTH-001a", "MIT-ACME-AUTH-001b"]
    assert found["reviewed"] == datetime.date.today().isoformat()


@pytest.mark.needs("flask")
def test_the_new_pattern_is_proven(new, capsys):
    new(*NAMED)
    status = main.main(["prove", "ACME-AUTH-001", "--patterns", "."])
    line = capsys.readouterr().out.splitlines()[0]

    assert (status, line.endswith("proven")) == (0, True), line
    assert "1✓ 2✓ 3✓ 4✓" in line and " 0 mutants" not in line


def test_every_option_is_in_the_file(new):
    words = ("--framework", "any", "--language", "go", "--severity", "CRITICAL", "--tier", "a")
    _, out, _ = new(*NAMED, *words, "--json")
    found = pattern(".")

    assert json.loads(out) == {
        "id": "ACME-AUTH-001",
        "folder": "acme_auth_001",
        "files": [*FILES[:-1], "wrong/admins.py"],
    }
    assert (found["framework"], found["language"], found["severity"], found["tier"]) == ("any", "go", "critical", "A")


@pytest.mark.parametrize(
    "name", ['Links: "public" #1', "no", "2025-11-25", "Überall \\ 'offen'", "{a}", "- a", "&a *b"]
)
def test_names_are_quoted_in_the_file(new, name):
    assert new("--id", "ACME-001", "--name", name, "--category", "on")[0] == 0
    assert (pattern(".")["name"], pattern(".")["category"]) == (name, "on")


def test_missing_options_are_named(new, tmp_path):
    assert new("--id", "ACME-AUTH-001") == (
        2,
        "",
        "tmkb: Missing options: --name, --category. Add them, or run this in a terminal to be prompted.\n",
    )
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--id", "ACME"),
            "'ACME' is not a valid pattern id. Use a prefix of your own and three digits, for example ACME-AUTH-001.",
        ),
        (
            ("--id", "../ACME-001"),
            "'../ACME-001' is not a valid pattern id. Use a prefix of your own and three digits, for example ACME-AUTH-001.",
        ),
        (("--name", " "), "A name must be one line of 1 to 80 characters."),
        (("--name", "a\x1b[31m"), "A name must be one line of 1 to 80 characters."),
        (("--name", "a" * 81), "A name must be one line of 1 to 80 characters."),
        (
            ("--category", "Object Level"),
            "'Object Level' is not a valid category. Use lower case letters, digits and hyphens, beginning with a letter.",
        ),
        (
            ("--framework", ""),
            "'' is not a valid framework. Use lower case letters, digits and hyphens, beginning with a letter.",
        ),
    ],
)
def test_invalid_options_are_reported(new, tmp_path, words, message):
    assert new(*NAMED, *words) == (2, "", f"tmkb: {message}\n")
    assert os.listdir(tmp_path) == []


def test_all_invalid_options_are_reported(new):
    assert len(new("--id", "1", "--name", "", "--category", "")[2].splitlines()) == 3


def test_an_unknown_severity(new):
    status, out, err = new(*NAMED, "--severity", "huge")

    assert (status, out) == (2, "")
    assert "critical" in err


def test_the_id_of_a_packaged_pattern_is_taken(new):
    status, _, err = new(*NAMED, "--id", "TMKB-AUTH-001")

    assert (status, "already has the id TMKB-AUTH-001." in err) == (2, True)
    assert err.endswith("Choose another number, or a prefix of your own.\n")


def test_nothing_is_overwritten(new, tmp_path):
    new(*NAMED)
    file = tmp_path / "acme_auth_001" / "pattern.yaml"
    file.write_text("mine")

    assert new(*NAMED) == (
        2,
        "",
        "tmkb: acme_auth_001 already exists; nothing in it was changed. Choose another id or --dir.\n",
    )
    assert file.read_text() == "mine"


def test_a_pattern_inside_a_pattern_is_refused(new):
    new(*NAMED)

    assert new(*NAMED, "--id", "ACME-AUTH-002", "--dir", "acme_auth_001") == (
        2,
        "",
        "tmkb: acme_auth_001 is itself a pattern; a pattern inside it would not be loaded. Use its parent folder.\n",
    )


def test_a_file_is_not_a_target_folder(new, tmp_path):
    (tmp_path / "file").touch()

    assert new(*NAMED, "--dir", "file") == (
        2,
        "",
        "tmkb: file is not a folder. Use a folder; it is created if it does not exist.\n",
    )
    assert new(*NAMED, "--dir", "file/in")[2] == "tmkb: Cannot create file/in/acme_auth_001: Not a directory.\n"


@pytest.mark.parametrize("call", ["mkdir", "open"])
def test_an_unwritable_folder_is_reported_and_unchanged(new, tmp_path, monkeypatch, call):
    def refuse(path, *rest, **more):
        if call == "open" and "x" not in rest:
            return open(path, *rest, **more)
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(scaffold if call == "open" else os, call, refuse, raising=False)

    assert new(*NAMED) == (2, "", "tmkb: Cannot create acme_auth_001: Permission denied.\n")
    assert os.listdir(tmp_path) == []


def test_the_template_is_data_that_no_server_reads(ids):
    assert "TMKB-AUTH-000" not in ids
    assert "TMKB-AUTH-000" not in [found["id"] for found in library.load([library.PACKAGED]).patterns]
    assert os.path.isfile(os.path.join(scaffold.TEMPLATE, "pattern.yaml"))


def test_in_a_checkout_the_file_points_editors_to_the_schema(monkeypatch, tmp_path):
    values = {"id": "ACME-001", "name": "x", "category": "y"}
    first = lambda folder: (tmp_path / folder / "pattern.yaml").read_text().splitlines()[0]  # noqa: E731
    elsewhere, _ = scaffold.write(str(tmp_path / "elsewhere"), values)
    monkeypatch.setattr(paths, "ROOT", str(tmp_path))
    monkeypatch.setattr(scaffold, "SCHEMA", str(tmp_path / "schemas" / "meta" / "pattern.yaml"))
    inside, _ = scaffold.write(str(tmp_path / "patterns"), values)

    assert "$schema" not in first(elsewhere)
    assert first(inside) == "# yaml-language-server: $schema=../../schemas/meta/pattern.yaml"


# In a terminal


def in_terminal(folder, typed, *words):
    """What the command says, and its exit status, to somebody who types this."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "dumb"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tmkb", "new", "pattern", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    message = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        message += chunk
        if not chunk:
            break
    status = process.wait(20)
    os.close(ours)
    return message.decode(), status


def test_a_terminal_prompts_for_missing_options(tmp_path):
    message, status = in_terminal(tmp_path, "acme\nacme-auth-001\nobject-level\n", "--name", "Mine")
    found = library.load([str(tmp_path)]).patterns[0]

    assert status == 0
    assert "Id, with a prefix of your own" in message and "Name, " not in message
    assert "'ACME' is not a valid pattern id." in message
    assert (found["id"], found["name"], found["category"]) == ("ACME-AUTH-001", "Mine", "object-level")


def test_ending_the_prompts_creates_nothing(tmp_path):
    message, status = in_terminal(tmp_path, "acme-auth-001\n\x04")

    assert status == 2
    assert "tmkb: Missing options: --name, --category." in message
    assert os.listdir(tmp_path) == []


def test_a_misspelt_category_gets_a_suggestion(new):
    status, out, err = new("--id", "ACME-AUTH-001", "--name", "X", "--category", "objct-level")

    assert (status, out) == (2, "")
    assert err == (
        "tmkb: The category 'objct-level' is not in _vocabulary.yaml. Did you mean 'object-level'? Or add it there.\n"
    )
