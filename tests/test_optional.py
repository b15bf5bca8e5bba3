"""Each optional dependency in turn is hidden: every test module is collected or skipped with a reason."""

import os
import subprocess
import sys

import pytest

from tests.support import optional
from tests.support.repository import ROOT

pytestmark = pytest.mark.full

TOGETHER = ",".join(sorted({*optional.FROM} - {"hypothesis", "syrupy", "xdist"}))  # all that the extra `test` lacks


@pytest.mark.parametrize("blocked", [*optional.FROM, TOGETHER, ",".join(optional.FROM)])
def test_collection_without(blocked):
    plugins = ["-p", "tests.support.block_import"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "--collect-only", "-qq", "-m", ""],
        cwd=ROOT,
        env={**os.environ, "BLOCKED": blocked, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
