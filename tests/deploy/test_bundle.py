"""The program that writes MCP bundles, without what it needs."""

import subprocess
import sys

import pytest

from deploy import bundle


def test_a_missing_tool_is_named(monkeypatch, tmp_path):
    def fails(_):
        raise subprocess.CalledProcessError(1, "python", stderr=b"x\npython: No module named hatchling\n")

    monkeypatch.setattr(bundle, "build_wheel", fails)
    monkeypatch.setattr(sys, "argv", ["bundle", "-o", str(tmp_path)])

    with pytest.raises(SystemExit, match=r"No module named hatchling. `pip install -e '.\[dev\]'`"):
        bundle.main()
