"""Serving, asking, listing and validating read a pattern's Python as text. Nothing of it is imported or run."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.support.process import Server
from tmkb.cli import main
from tmkb.schema import paths


@pytest.fixture
def trapped(tmp_path):
    """A pattern whose every file writes a marker when it is run."""
    folder, marker = tmp_path / "patterns", tmp_path / "marker"
    shutil.copytree(os.path.join(paths.PATTERNS, "tmkb_auth_007"), folder / "tmkb_auth_007")
    for path in folder.rglob("*.py"):
        path.write_text(f"open({str(marker)!r}, 'w').write('ran')\n" + path.read_text())
    return str(folder), marker


@pytest.mark.process
def test_nothing_runs(trapped, capsys):
    folder, marker = trapped
    with Server("--patterns", folder) as server:
        server.handshake()
        answer = json.loads(
            server.query(context="load a record by the id in the url", verbosity="human")["content"][0]["text"]
        )
        server.end()
    for words in (["validate", folder], ["list", "--patterns", folder], ["get", "TMKB-AUTH-007", "--patterns", folder]):
        assert main.main(words) == 0
    assert main.main(["get", "TMKB-AUTH-007", "--test", "--patterns", folder]) == 0
    main.main(["validate", "--strict", folder])
    main.main(["query", "load a record by the id", "--patterns", folder])

    assert answer["pattern_count"] == 1
    assert not marker.exists()


@pytest.mark.needs("flask")
@pytest.mark.process
def test_proving_does_run_it(trapped, capsys):
    folder, marker = trapped
    main.main(["prove", "--patterns", folder, "--no-mutants"])

    assert "may not write" in capsys.readouterr().out
    assert not marker.exists()


@pytest.mark.process
def test_the_command_serve_never_loads_the_prover():
    code = "import sys, tmkb.cli.serve, tmkb.cli.main; print([m for m in sys.modules if m.startswith('tmkb.authoring.proofs')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
