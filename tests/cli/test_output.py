"""Output contains no control characters from content, and works with any encoding."""

import argparse
import json
import os
import subprocess
import sys

import pytest

from tmkb.cli import layout, main, output
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


@pytest.mark.process
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize(
    "words", [["schema", "formats"], ["list"], ["list", "--json"], ["validate", "--json"]], ids=" ".join
)
def test_any_encoding_of_stdout_works(encoding, words):
    command = [sys.executable, "-m", "tmkb", *words]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    text = done.stdout.decode(encoding)

    assert (done.returncode, done.stderr) == (0, b"")
    assert text
    if "--json" in words:
        plain = subprocess.run(
            command, capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": "utf-8"}
        )
        assert json.loads(text) == json.loads(plain.stdout)
