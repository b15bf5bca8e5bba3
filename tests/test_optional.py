"""Optional dependencies are hidden: every test module is collected or skipped with a reason.

Of the numbers of the packages, each binary digit divides them into two groups, which are hidden in turn. So for any two
packages, the first is hidden once while the second is there.
"""

import os
import subprocess
import sys

import pytest

from tests.support import optional
from tests.support.repository import ROOT

pytestmark = pytest.mark.full

NAMES = sorted(optional.FROM)
UNTESTED = [name for name in NAMES if name not in ("hypothesis", "syrupy", "xdist")]  # that the extra `test` lacks
DIGITS = range(len(NAMES).bit_length())
GROUPS = {
    "all": NAMES,
    "all but test": UNTESTED,
    **{
        f"digit {digit} is {value}": [name for number, name in enumerate(NAMES) if number >> digit & 1 == value]
        for digit in DIGITS
        for value in (0, 1)
    },
}


@pytest.mark.parametrize("group", GROUPS)
def test_collection_without(group):
    plugins = ["-p", "tests.support.block_import"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "--collect-only", "-qq", "-m", ""],
        cwd=ROOT,
        env={**os.environ, "BLOCKED": ",".join(GROUPS[group]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
