"""Output contains no control characters from content, and works with any encoding."""

import argparse
import json
import os
import subprocess
import sys

import pytest

from tmkb.cli import layout, loader, main, output
from tmkb.schema import hidden

HOSTILE = "a\x1b]0;x\x07b\r\x9b2Jc\u202ed\U000e0041"


@pytest.fixture
def terminal(monkeypatch):
    """Let stdout be a terminal with colours."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.parametrize(
    "content",
    [
        layout.text(HOSTILE),
        layout.text(("bold", "bold"), HOSTILE),
        layout.text("x") + layout.indented(layout.text(HOSTILE), HOSTILE),
        layout.table(["a", "b"], [[HOSTILE, HOSTILE]]),
        layout.code(f"x = '{HOSTILE}'", "python"),
    ],
    ids=["text", "styled", "nested", "table", "code"],
)
def test_content_is_escaped_and_styles_are_not(terminal, content):
    shown = layout.rendered(content)

    assert "\\u001b]0;x" in shown and "\\udb40\\udc41" in shown
    assert "\x1b]" not in shown and not set(shown) & {"\x07", "\r", "\x9b", "\u202e", "\U000e0041"}
    assert ("\x1b[" in shown) == any(style for line in content for _, style in line.spans)


def test_escaped_json_has_the_same_value(capsys):
    output.write(argparse.Namespace(json=True), {"a": HOSTILE, "é": "✓"}, "")
    text = capsys.readouterr().out

    assert json.loads(text) == {"a": HOSTILE, "é": "✓"}
    assert hidden.find(text) == ""
    assert "✓" in text


@pytest.mark.parametrize(
    "words", [["get", HOSTILE], ["list", "--patterns", HOSTILE], ["query", "celery", "--patterns", HOSTILE]]
)
def test_messages_are_escaped(capsys, words):
    main.main(words)
    captured = capsys.readouterr()

    assert hidden.find(captured.out + captured.err) == ""
    assert "\\u001b]0;x" in captured.err.lower()


def test_problems_are_escaped(capsys, patterns):
    folder = patterns("acme_auth_024")
    path = folder / "acme_auth_024" / "pattern.yaml"
    path.write_text(path.read_text() + '"\\e[31mred": 1\n')

    assert main.main(["validate", str(folder)]) == 1
    out = capsys.readouterr().out
    assert "Unknown key '\\u001b[31mred'" in out and hidden.find(out) == ""


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (PermissionError(13, "Permission denied", "/x/y"), "tmkb: Cannot use /x/y: Permission denied.\n"),
        (KeyError("a"), "tmkb: Internal error in test_output.py, line "),
    ],
)
def test_an_unexpected_error_is_a_sentence(capsys, monkeypatch, error, shown):
    def fail(_):
        raise error

    monkeypatch.setattr("tmkb.cli.version.run", fail)
    monkeypatch.delenv("TMKB_TRACEBACK")

    assert main.main(["version"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith(shown) and captured.err.count("\n") == 1

    monkeypatch.setenv("TMKB_TRACEBACK", "1")
    with pytest.raises(type(error)):
        main.main(["version"])


def test_a_status_line_appears_on_a_terminal_and_is_removed(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(output, "_PATIENCE", 0)
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TERM", "xterm")
    with output.progress("first") as show:
        while not (shown := capsys.readouterr().err):  # the line appears in another thread
            pass
        show("second, and more than fits")

    assert shown.endswith("\rfirst")
    assert capsys.readouterr().err == "\rsecond, and more th\rsecond, and more th" + f"\r{' ' * 19}\r"


def test_messages_do_not_share_a_line_with_the_status(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(output, "_PATIENCE", 0)
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TERM", "xterm")
    with output.progress("first"):
        while not capsys.readouterr().err:
            pass
        output.fail("wrong")
        loader.library([str(tmp_path / "no")])

    blank = f"\r{' ' * 19}\r"
    again = f"\r{'first':<19}\rfirst"
    message, problem = capsys.readouterr().err.split(again)[:2]
    assert message == f"{blank}tmkb: wrong\n"
    assert problem.startswith(blank) and problem.endswith("\n")


@pytest.mark.parametrize(("is_terminal", "term"), [(False, "xterm"), (True, "dumb")])
def test_elsewhere_no_status_line_appears(capsys, monkeypatch, is_terminal, term):
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    monkeypatch.setattr(output, "_PATIENCE", 0)
    monkeypatch.setenv("TERM", term)
    with output.progress("first") as show:
        show("second")
    assert [*output.counted([1, 2], 2, "Counting")] == [1, 2]

    assert capsys.readouterr().err == ""


@pytest.mark.process
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("words", [["schema", "formats"], ["list"], ["list", "--json"]], ids=" ".join)
def test_any_encoding_of_stdout_works(encoding, words, patterns):
    folder = patterns("acme_auth_001", "acme_auth_024")
    edited = folder / "acme_auth_001" / "pattern.yaml"
    text = edited.read_text(encoding="utf-8")
    assert "name: Background" in text
    edited.write_text(text.replace("name: Background", "name: “Bäckground”"), encoding="utf-8")
    command = [sys.executable, "-m", "tmkb", *words]
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "TMKB_PATTERNS": str(folder)}
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    text = done.stdout.decode(encoding)

    assert (done.returncode, done.stderr) == (0, b"")
    assert text
    if "--json" in words:
        plain = subprocess.run(
            command, capture_output=True, check=True, env=environment | {"PYTHONIOENCODING": "utf-8"}
        )
        assert json.loads(text) == json.loads(plain.stdout)
