"""Commands with a server of others read nothing that only our own servers need."""

import os
import shlex
import sys

import pytest

from tests.support.repository import ROOT
from tmkb.knowledge import pattern

pytestmark = pytest.mark.process

NOTES = [sys.executable, os.path.join(ROOT, "tests", "data", "servers", "notes.py")]
COMMAND = shlex.join(NOTES)
RECORDING = """\
kind: transcript
title: Tools
server: notes
recorded: {over: stdio}
revisions: ["2025-06-18"]
opening: handshake
exchanges:
  - send: {jsonrpc: "2.0", id: 1, method: tools/list}
    expect:
      - {jsonrpc: "2.0", id: 1, result: {$any: object}}
"""


@pytest.mark.parametrize(
    "words",
    [
        ["call", "add", "text=x", "--command", COMMAND],
        ["tools", "--command", COMMAND],
        ["diff", COMMAND, COMMAND],
        ["replay", "recording.yaml", "--command", COMMAND],
        ["record", "--send", "requests.yaml", "-o", "new.transcript.yaml", "--", *NOTES],
    ],
    ids=lambda words: words[0],
)
def test_our_patterns_are_not_read(words, run_tmkb, tmp_path, monkeypatch):
    (tmp_path / "recording.yaml").write_text(RECORDING)
    (tmp_path / "requests.yaml").write_text("- {method: tools/list}\n")
    folder = tmp_path / "patterns" / "one"
    folder.mkdir(parents=True)
    (folder / "pattern.yaml").write_text("kind: pattern\n")
    monkeypatch.setenv("TMKB_PATTERNS", str(folder.parent))  # the cache has nothing about it
    monkeypatch.setattr(pattern, "read", lambda folder: pytest.fail(f"{folder} is read"))
    monkeypatch.chdir(tmp_path)

    status, _, err = run_tmkb(*words)

    assert status == 0, err
