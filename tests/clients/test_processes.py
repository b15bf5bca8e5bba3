"""Several processes install at once, and disks are full."""

import json
import os
import subprocess
import sys

import pytest

from tests.support.repository import ROOT
from tmkb.clients import files

pytestmark = [pytest.mark.process, pytest.mark.skipif(sys.platform == "win32", reason="the home folder is in HOME")]
COUNT = 6
REMEDY = "Check the permissions and links of its path, and the free space."


def start(home, *words, limit=None):
    """Start `tmkb install` in a home folder, which may write files of at most so many bytes."""
    code = "import sys; from tmkb.cli.main import main; sys.exit(main(['install', *sys.argv[1:]]))"
    if limit is not None:
        code = f"import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); {code}"
    return subprocess.Popen(
        [sys.executable, "-c", code, *words, "--no-check"],
        cwd=home,
        env={
            "HOME": str(home),
            "TMPDIR": str(home),  # so that this Python is not in the temporary folder, wherever the checkout is
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": ROOT,
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def cursor(tmp_path):
    (tmp_path / ".cursor").mkdir()
    file = tmp_path / ".cursor" / "mcp.json"
    file.write_text('{\n  "mcpServers": {"other": {"command": "x"}} // c\n}\n')
    return file


def finish(process):
    """Wait for a process; return its status and what it wrote to stderr."""
    _, err = process.communicate(timeout=120)
    return process.returncode, err


def test_entries_of_processes_that_run_at_once_are_all_there(tmp_path, cursor):
    before = cursor.read_bytes()
    running = [start(tmp_path, "cursor", "--name", f"kb{number}", "--force") for number in range(COUNT)]
    assert [finish(process)[0] for process in running] == [0] * COUNT
    servers = json.loads(cursor.read_text().replace(" // c", ""))["mcpServers"]

    assert {*servers} == {"other", *(f"kb{number}" for number in range(COUNT))}
    assert len(files.backups(cursor)) == 5
    running = [start(tmp_path, "cursor", "--name", f"kb{number}", "--uninstall") for number in range(COUNT)]
    assert [finish(process) for process in running] == [(0, "")] * COUNT
    assert cursor.read_bytes() == before
    assert [name for name in os.listdir(cursor.parent) if not name.endswith(".bak")] == ["mcp.json"]


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(tmp_path, cursor):
    before = cursor.read_bytes()

    assert finish(start(tmp_path, "cursor", limit=30)) == (
        1,
        f"tmkb: .cursor/mcp.json: Cannot write this file: File too large. {REMEDY} Nothing was changed.\n",
    )
    assert cursor.read_bytes() == before and os.listdir(cursor.parent) == ["mcp.json"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="mounts a small disk")
def test_a_full_disk_is_named(tmp_path):
    folder = tmp_path / ".cursor"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting is not permitted here")
    try:
        before = b"{}" + b" " * 4000
        (folder / "mcp.json").write_bytes(before)
        assert finish(start(tmp_path, "cursor")) == (
            1,
            f"tmkb: .cursor/mcp.json: Cannot write this file: No space left on device. {REMEDY} Nothing was changed.\n",
        )
        assert (folder / "mcp.json").read_bytes() == before and os.listdir(folder) == ["mcp.json"]
    finally:
        subprocess.run(["umount", folder], check=True)
